"""The record of a run: what happened, in order."""
