"""Submitting tasks."""
