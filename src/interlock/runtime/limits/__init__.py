"""The limits of a run."""
