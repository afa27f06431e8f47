"""The model: frozen records, and the pure algebra on them.

What lives here: the words of the product as records (`task`, `claim`, `outcome`, `progress`,
`event`, `limits`, `why`), and functions that only compute: dependency graphs (`graph`), whether two
claims conflict (`conflict`), which agent owns a path (`ownership`), templates, durations and
redaction. `patterns/` is the path algebra. `stable_names` has the names by which a journal knows
Interlock's own agents and data types. What does not: state, clocks, I/O. Records are never
mutated; `task.replace(...)` makes a changed copy.

Start reading at `task`, then `claim` and `outcome`. Every other room may import this one; it
imports `errors` only.

Words: a *claim* is what a task will touch; a *pattern* is how paths are written in a claim; an
*alternative* is one way through the braces of a pattern; a *witness* is a path that two patterns
both match; a *reference* quotes a field of another task in a *template*.
"""
