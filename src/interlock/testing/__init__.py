"""The kit for tests of programs that use Interlock. It ships with the package.

`virtual_run.simulate` runs a program with the real runtime on a `virtual_loop`: a seed decides the
order of task steps, and time jumps to the next timer. `simulated_ports` gives a Runtime its clock,
randomness, threads and processes there; `out_of_bounds` refuses whatever a seed cannot decide.
`fake_agent` has agents made of actions, and `site` records what they did. `interruptions` strikes a
program at every step. `replay` puts a journal through a fresh kernel and compares the decisions.

Start reading at docs/testing.md, then `virtual_run`. Not here: the simulation of Interlock itself
(worlds, judges, planted bugs), which is in `tests/simulation/` and not part of the wheel.

Words: a *step* is what a task does from one await to the next; a *visit* is one attempt as the site
saw it; a *fault* is something that happens to a program at a step.
"""
