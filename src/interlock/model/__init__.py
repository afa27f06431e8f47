"""Frozen records and the pure algebra on them: claims, patterns, tasks, outcomes, graphs."""
