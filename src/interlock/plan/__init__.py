"""Plan and project files, read into checked records. Nothing is executed here.

What lives here: reading `interlock.yaml` (`project_file`) and plan files (`plan_file`), with a
position for every problem; all problems of a file are reported at once. What does not: running
anything, importing agents, and looking at the disk beyond the files that are named.

    text ──yaml_tree──> nodes ──file_keys──> values ──for_each──> drafts ──tasks──> records

Start reading at `file_keys`, the tables of every key; then `plan_file.load_plan`. The result is in
`records`, which is all that other rooms need.

Words: a *node* is a piece of YAML with its position (`node`); a *kind* reads a node, or says what
is wrong with it (`scalar_kinds`, `model_kinds`, `composite_kinds`); a *hole* is `{{name}}` in text,
filled from a *scope* (`variables`); a *draft* is a task after `for_each` was expanded and before
defaults were filled in; *supply* is what can be claimed at all.
"""
