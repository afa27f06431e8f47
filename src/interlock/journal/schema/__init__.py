"""What a journal holds, independently of the Python classes of the day.

`names.py` is the table of all events and records, with their versions and fields; `upcasters.py`
brings what older versions wrote up to date. `codec.py` turns values into JSON and back, with one
module for each family of types: `own_records`, `tasks`, `outcomes`, `builtin_types`, `user_types`
and `pydantic_models`. `identity.py` keeps fingerprints stable across versions.

Not here: tables, files and transactions (the rest of `journal/`), and the kernel's classes, which
`runtime/recorded_types.py` binds to their names. Start reading at `names.py`.
"""
