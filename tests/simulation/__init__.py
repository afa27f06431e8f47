"""The deterministic simulation of Interlock itself. It is not part of the wheel.

`kernel/` drives the real kernel through seeded worlds and judges it after every step. `runtime/`
drives the real Runtime, on the virtual loop of `interlock.testing`, through seeded runs and judges
what the agents did. Both make a *story* (plain data) from a seed, play it, ask a *judge* which
rules were broken, and cut a story that breaks one down to the shortest that still does.
*Planted bugs* test the judges: each must be found within 500 seeds.

`faulty_disk` and `loop_writer` simulate the disk of a journal. Start reading at
`kernel/world.py` or `runtime/play.py`; `make simulate` runs both.
"""
