"""All SQL of the journal but the tables themselves; each statement has a name."""

from __future__ import annotations

# -- writing ---------------------------------------------------------------------------------

BEGIN_RUN = """
INSERT INTO runs (no, id, started_at, ended_at, inherits, options, checksum)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (no) DO UPDATE SET ended_at = NULL"""

END_RUN = "UPDATE runs SET ended_at = ? WHERE no = ?"

ADD_EVENTS = "INSERT INTO events (seq, at, kind, task_id, data, file, checksum) VALUES {rows}"

FOLD_TASKS = """
INSERT INTO tasks (
    run, task_id, state, since, agent, labels, key, fingerprint, attempts, token, submitted,
    settled, started_at
) VALUES {rows}
ON CONFLICT (run, task_id) DO UPDATE SET
    state = coalesce(excluded.state, state),
    since = coalesce(excluded.since, since),
    agent = coalesce(excluded.agent, agent),
    labels = coalesce(excluded.labels, labels),
    key = coalesce(excluded.key, key),
    fingerprint = coalesce(excluded.fingerprint, fingerprint),
    attempts = coalesce(excluded.attempts, attempts),
    token = coalesce(excluded.token, token),
    submitted = coalesce(submitted, excluded.submitted),
    settled = coalesce(excluded.settled, settled),
    started_at = coalesce(excluded.started_at, started_at)"""

# The first success stands, as everywhere. Parameters are not numbered (`?1`): early Python 3.12
# takes those for named ones, and warns.
ADD_KEY = """
INSERT INTO keys (key, run, task_id, fingerprint, at, data, file, checksum)
SELECT tasks.key, runs.id, tasks.task_id, tasks.fingerprint, won.at, won.data, won.file,
    checksum(won.data, won.file, tasks.key, runs.id, tasks.task_id, tasks.fingerprint, won.at)
FROM (SELECT ? AS at, ? AS data, ? AS file) AS won, tasks JOIN runs ON runs.no = tasks.run
WHERE tasks.run = ? AND tasks.task_id = ? AND tasks.key IS NOT NULL
ON CONFLICT (key) DO NOTHING"""

# Two samples become one: means and squared deviations are added as Chan, Golub and LeVeque do.
ADD_TO_HISTORY = """
INSERT INTO history (agent, label, n, mean, m2, at) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (agent, label) DO UPDATE SET
    n = n + excluded.n,
    mean = mean + (excluded.mean - mean) * excluded.n / (n + excluded.n),
    m2 = m2 + excluded.m2
        + (excluded.mean - mean) * (excluded.mean - mean) * n * excluded.n / (n + excluded.n),
    at = excluded.at"""

PUT_RECORD = "INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?)"
DELETE_RECORD = "DELETE FROM records WHERE namespace = ? AND key = ?"

NAME_WRITE = "INSERT OR REPLACE INTO last_write VALUES (1, ?)"
LAST_WRITE = "SELECT name FROM last_write"

# -- reading ---------------------------------------------------------------------------------

RUNS = "SELECT no, id, started_at, ended_at, inherits, options, checksum FROM runs ORDER BY no"
RUN = "SELECT no, id, started_at, ended_at, inherits, options, checksum FROM runs WHERE id = ?"
LAST_RUN = """
SELECT no, id, started_at, ended_at, inherits, options, checksum
FROM runs ORDER BY no DESC LIMIT 1"""
NEXT_RUN_NO = "SELECT coalesce(max(no), 0) + 1 FROM runs"

EVENTS = """
SELECT seq, at, kind, task_id, data, file, checksum FROM events
WHERE seq > ? AND seq < ? ORDER BY seq LIMIT ?"""
EVENTS_OF_KIND = """
SELECT seq, at, kind, task_id, data, file, checksum FROM events
WHERE seq > ? AND seq < ? AND (kind IN (?, ?) OR kind GLOB ?) ORDER BY seq"""
LAST_EVENT = "SELECT max(seq) FROM events WHERE seq >= ? AND seq < ?"
FIRST_EVENT = "SELECT min(seq) FROM events WHERE seq >= ? AND seq < ?"
EVENT = "SELECT seq, at, kind, task_id, data, file, checksum FROM events WHERE seq = ?"

COUNTS = "SELECT state, count(*) FROM tasks WHERE run = ? GROUP BY state"
TASKS = """
SELECT task_id, state, since, agent, labels, key, fingerprint, attempts, token, submitted, settled,
    started_at
FROM tasks WHERE run = ? AND task_id > ? ORDER BY task_id LIMIT ?"""
TASK = """
SELECT task_id, state, since, agent, labels, key, fingerprint, attempts, token, submitted, settled,
    started_at
FROM tasks WHERE run = ? AND task_id = ?"""

LAST_TOKEN = "SELECT max(token) FROM tasks"

SUCCESS = "SELECT key, run, task_id, fingerprint, at, data, file, checksum FROM keys WHERE key = ?"
ESTIMATE = "SELECT n, mean, m2 FROM history WHERE agent = ? AND label = ?"

GET_RECORD = """
SELECT key, data, file, checksum FROM records WHERE namespace = ? AND key = ?"""
RECORDS = """
SELECT key, data, file, checksum FROM records WHERE namespace = ? AND key > ?
ORDER BY key LIMIT ?"""

# -- retention -------------------------------------------------------------------------------

DELETE_EVENTS = """
DELETE FROM events WHERE seq IN (SELECT seq FROM events WHERE seq >= ? AND seq < ? LIMIT ?)"""
DELETE_TASKS = "DELETE FROM tasks WHERE run = ?"
DELETE_RUN = "DELETE FROM runs WHERE no = ?"
FORGET_HISTORY = """
DELETE FROM history WHERE (agent, label) IN
    (SELECT agent, label FROM history ORDER BY at DESC LIMIT -1 OFFSET ?)"""
FILES = """
SELECT file FROM events WHERE file IS NOT NULL
UNION SELECT file FROM keys WHERE file IS NOT NULL
UNION SELECT file FROM records WHERE file IS NOT NULL"""
