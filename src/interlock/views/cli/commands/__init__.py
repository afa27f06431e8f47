"""The commands, one module per group; each module adds its own to the program with `add_to`.

The first line of a module is the heading of its group in docs/commands.md, the docstring of a
command is its help text. A command parses its arguments, calls the service or reads the journal,
and prints. It decides nothing and imports no pattern.
"""
