"""The tables of a journal, and their migrations.

`events` is authoritative, and each row has a checksum. `tasks` is folded from it in the same
transactions, for readers that want the state and not the history. An event's `seq` combines the
number of its run and its own number, so that one B-tree serves both orders and appends at its end.
"""

from __future__ import annotations

APPLICATION_ID = 0x494C4B4A
"""In the header of the file: `ILKJ`. It tells journals from the databases of other programs."""

NUMBERS = 40
"""The lower so many bits of a `seq` are the number of the event; the others are that of its run."""

_FIRST = """
CREATE TABLE runs (
    no INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    started_at REAL NOT NULL,
    ended_at REAL,
    inherits TEXT,
    options TEXT NOT NULL,
    checksum INTEGER NOT NULL
);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    task_id TEXT NOT NULL,
    data TEXT,
    file TEXT,
    checksum INTEGER NOT NULL
);
CREATE INDEX events_with_files ON events (file) WHERE file IS NOT NULL;
CREATE TABLE tasks (
    run INTEGER NOT NULL,
    task_id TEXT NOT NULL,
    state TEXT,
    since REAL,
    agent TEXT,
    labels TEXT,
    key TEXT,
    fingerprint TEXT,
    attempts INTEGER,
    token INTEGER,
    submitted INTEGER,
    settled INTEGER,
    started_at REAL,
    PRIMARY KEY (run, task_id)
) WITHOUT ROWID;
CREATE TABLE keys (
    key TEXT PRIMARY KEY,
    run TEXT NOT NULL,
    task_id TEXT NOT NULL,
    fingerprint TEXT,
    at REAL NOT NULL,
    data TEXT,
    file TEXT,
    checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE records (
    namespace TEXT NOT NULL,
    key TEXT NOT NULL,
    data TEXT,
    file TEXT,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (namespace, key)
) WITHOUT ROWID;
CREATE TABLE history (
    agent TEXT NOT NULL,
    label TEXT NOT NULL,
    n INTEGER NOT NULL,
    mean REAL NOT NULL,
    m2 REAL NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (agent, label)
) WITHOUT ROWID;
CREATE TABLE last_write (one INTEGER PRIMARY KEY CHECK (one = 1), name TEXT NOT NULL);
"""

# Events and records have names of their own since (`schema/names.py`), and each row says in which
# version it is written. Only the copy of the labels in this table has no version. The new number
# also keeps 0.1.0 from reading rows that it would misunderstand.
_SECOND = """
UPDATE tasks SET labels = replace(labels, '"again_of":', '"retry_of":')
WHERE labels LIKE '%"again_of":%';
"""

MIGRATIONS: tuple[str, ...] = (_FIRST, _SECOND)
"""Each makes a version of the tables out of the one before. Never change a released one."""

VERSION = len(MIGRATIONS)


def seq(run: int, number: int) -> int:
    """The position of an event in the journal."""
    return run << NUMBERS | number


def number(seq: int) -> int:
    """The number of an event in its run."""
    return seq & (1 << NUMBERS) - 1
