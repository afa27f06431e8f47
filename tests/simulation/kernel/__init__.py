"""Simulated worlds for the real kernel.

`story` has the records of a story, `storyteller` makes one from a seed, `world` plays it with
`simulated_agent`s on a virtual clock. The `oracle` judges every step: it keeps a `shadow` of the
state, which is updated from stimuli and instructions alone (`effects`), and checks the `rules`,
`fairness`, `answers` and `deadlock` against it. The kernel is never asked whether it is right.
The `planted*` modules hold the bugs that the oracle must find.
"""
