"""The deterministic simulation of Interlock itself. It is not part of the wheel.

A *story* is plain data made from a seed: what is submitted, what agents do, what goes wrong. A
*target* plays it and a judge says which rules were broken: `kernel/` plays a world with the real
kernel, `runtime/` plays a run with the real Runtime on the virtual loop of `interlock.testing`.
What both share is here: `storyteller` (drawing stories), `shrink` (the shortest story that still
breaks the rule), `narration` (stories as text), `batch` (many seeds), `planting` (bugs planted on
purpose, which the judges must find within 500 seeds).

`faulty_disk` and `loop_writer` simulate the disk of a journal. Start reading at `target.py`;
`make simulate` runs both targets, `python -m tests.simulation kernel` one.
"""
