"""Whole runs: stories told through the public API to the real Runtime on the virtual loop."""
