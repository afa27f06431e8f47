"""Simulated runs of the real Runtime, through its public API, on the virtual loop.

`story` has the records of a story, `storyteller` makes one from a seed. `play` plays it: `acts` are
what the user does, `agents` what the agents do, and both write into the `record`. The `judge` reads
the record alone: exclusion and outcomes, `times`, `limits` and `fairness`. `planted` holds the bugs
that the judge must find.
"""
