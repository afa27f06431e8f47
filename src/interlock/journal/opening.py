"""Open the database file, or say clearly why that is impossible. A rejected file is not touched."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from interlock.errors import InvalidOption, UnreadableJournal
from interlock.journal.disk import Disk
from interlock.journal.rows import checksum
from interlock.journal.tables import APPLICATION_ID, MIGRATIONS, VERSION

_BUSY = 5.0
"""Seconds for which SQLite waits for a lock before it reports an error."""
_CHECKED = 256 * 1024 * 1024
"""Files up to this size, in bytes, are checked as a whole when a coordinator opens them. That takes
half a second for the largest. Rows have checksums of their own in any case."""


_MAGIC = b"SQLite format 3\0"
_PAGE = 4096
_HEADER = 100
"""The size of the header of a database, in bytes."""


def place(path: str | os.PathLike[str]) -> Path:
    """The canonical path of a journal, links resolved; raises if there can be no journal there.

    This comes before anything is created: a rejected file gets no lock file beside it either.
    """
    if not os.fspath(path):
        raise InvalidOption("journal is empty text; it is the path of a file")
    try:
        found = Path(path).expanduser().resolve()
        there = found.exists()
    except (
        OSError,
        RuntimeError,
        ValueError,
    ) as error:  # link loops, unknown users, NUL bytes, long names
        raise _no_place(str(path), error) from error
    if there:
        check(found, wholly=False)
    return found


def make_folder(path: Path) -> None:
    """Make the folder of a new journal."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _no_place(str(path), error) from error


def _no_place(path: str, error: Exception) -> UnreadableJournal:
    why = getattr(error, "strerror", None) or error
    advice = "Name a file in a folder that exists or can be created"
    return UnreadableJournal(path, f"no such file can be created ({why})", advice)


def open_to_write(path: Path, durability: str, disk: Disk) -> sqlite3.Connection:
    """Open it for the one writer; a missing journal is created.

    One of an older format is brought up to date by the first write (`migrations`).
    """
    if not path.exists():
        _create(path, disk)
    check(path)
    if not os.access(path, os.W_OK) or not os.access(path.parent, os.W_OK):
        raise UnreadableJournal(
            str(path),
            "it is not writable",
            "Change the permissions of the file and its folder, or choose another place",
        )
    connection = _connect(path, "rw")
    try:
        connection.create_function("checksum", -1, checksum, deterministic=True)
        (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        connection.execute(f"PRAGMA synchronous = {disk.synchronous(durability)}")
        connection.execute(f"PRAGMA journal_size_limit = {64 * 1024 * 1024}")
        _check_format(path, format_of(connection))
    except BaseException:
        connection.close()
        raise
    if mode != "wal":
        connection.close()
        raise UnreadableJournal(
            str(path),
            "this file system has no shared memory, which SQLite's write-ahead log needs",
            "Choose a place on a local disk",
        )
    return connection


def open_to_read(path: Path) -> sqlite3.Connection:
    """Open it for reading, beside any number of readers and one writer."""
    check(path, wholly=False)
    connection = _connect(path, "ro")
    try:
        connection.execute("SELECT 1 FROM runs LIMIT 1").fetchone()
    except WHILE_READING as error:
        connection.close()
        if means_damage(error) or Path(f"{path}-wal").exists():
            raise unreadable(path, error) from error
        # No process writes it, and this one may not: then no lock is needed.
        connection = _connect(path, "ro&immutable=1")
    try:
        connection.execute("PRAGMA query_only = ON")
        _check_format(path, format_of(connection))
    except BaseException:
        connection.close()
        raise
    return connection


def check(path: Path, wholly: bool = True) -> None:
    """Raise UnreadableJournal unless this is a journal that we can use."""
    if path.is_dir():
        raise UnreadableJournal(str(path), "this is a folder", "Name a file in it")
    if not path.exists():
        raise UnreadableJournal(
            str(path),
            "there is no such file",
            "Check the name, or run something with this journal first",
        )
    if not os.access(path, os.R_OK):
        raise UnreadableJournal(
            str(path), "it is not readable", "Change the permissions, or choose another place"
        )
    try:
        _check_header(path)
        if wholly and os.stat(path).st_size <= _CHECKED:
            check_pages(path)
    except WHILE_READING as error:
        raise unreadable(path, error) from error


def _check_header(path: Path) -> None:
    """Check the bytes of the header, without SQLite.

    SQLite would create files beside a file that may not be ours. Told not to, it would report as
    damaged what a kill in the middle of a checkpoint has left: such a file is complete only with
    its log.
    """
    with open(path, "rb") as file:
        header = file.read(_HEADER)
    if header[: len(_MAGIC)] != _MAGIC[: len(header)]:
        raise damaged(path, "file is not a database")
    page_size = int.from_bytes(header[16:18], "big")
    pages = int.from_bytes(header[28:32], "big")
    version = int.from_bytes(header[60:64], "big")
    application = int.from_bytes(header[68:72], "big")
    if 0 < len(header) < _HEADER:
        raise damaged(path, "it is truncated")
    if application != APPLICATION_ID:
        raise UnreadableJournal(
            str(path),
            "this is a database of another program, not a journal of Interlock",
            "Choose another name for the journal",
        )
    _check_format(path, version)
    size = os.stat(path).st_size
    if (size < pages * page_size or size % _PAGE) and not _has_log(path):
        raise damaged(path, "it is truncated")


def _check_format(path: Path, version: int) -> None:
    """Raise for tables of a newer version. The header may not have that yet, if the log has it."""
    if version > VERSION:
        raise UnreadableJournal(
            str(path),
            f"it was written by a newer Interlock (format {version}; this one knows {VERSION})",
            "Use that version, or choose another name for the journal",
        )


def _has_log(path: Path) -> bool:
    """Whether part of it is in the write-ahead log beside it."""
    try:
        return os.stat(f"{path}-wal").st_size > 0
    except OSError:
        return False


def check_pages(path: Path) -> None:
    """Check the structure of the file. The checksums of rows are checked when they are read."""
    connection = _connect(path, "ro")
    try:
        (found,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    finally:
        connection.close()
    if found != "ok":
        raise damaged(path, found)


_PASSING = (
    "SQLITE_BUSY",
    "SQLITE_LOCKED",
    "SQLITE_IOERR",
    "SQLITE_FULL",
    "SQLITE_READONLY",
    "SQLITE_CANTOPEN",
    "SQLITE_NOMEM",
    "SQLITE_INTERRUPT",
    "SQLITE_PROTOCOL",
)


_OURS = (sqlite3.IntegrityError, sqlite3.ProgrammingError)
"""Errors that mean a bug of ours, not damage of the file."""
WHILE_READING = (sqlite3.Error, UnicodeDecodeError)
"""What reading may raise. The second one where SQLite's own message quotes damaged text."""


def means_damage(error: Exception) -> bool:
    """Whether an error of SQLite means damage, not a condition that may pass."""
    if isinstance(error, UnicodeDecodeError) or "decode to UTF-8" in str(error):
        return True
    if not isinstance(error, sqlite3.DatabaseError) or isinstance(error, _OURS):
        return False
    return not getattr(error, "sqlite_errorname", "SQLITE_IOERR").startswith(_PASSING)


def unreadable(path: Path, error: Exception) -> UnreadableJournal:
    """The exception for an error while reading."""
    if means_damage(error):
        return damaged(path, str(error))
    advice = "Check the disk and the permissions, then try again"
    return UnreadableJournal(str(path), f"it cannot be read at the moment ({error})", advice)


def damaged(path: Path, how: str) -> UnreadableJournal:
    """The exception for a file that is not as it was written."""
    return UnreadableJournal(
        str(path),
        f"the file is damaged ({' '.join(how.split())})",
        f"Restore it from a copy; or move it away, with {path.name}-wal and {path.name}-shm if they"
        f" exist, and start anew. `sqlite3 {path.name} .recover` may save what is in it",
    )


def unknown(path: Path, where: str, problem: str) -> UnreadableJournal:
    """The exception for a name or a version that this Interlock does not know."""
    return UnreadableJournal(
        str(path),
        f"{where} was written by a newer Interlock: {problem}",
        "Use that version, or choose another name for the journal",
    )


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?mode={mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=_BUSY,
    )


def _create(path: Path, disk: Disk) -> None:
    """Create a journal under another name first, so that there never is half of one."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f".{path.name}.new")
        for leftover in (new, Path(f"{new}-wal"), Path(f"{new}-shm"), Path(f"{new}-journal")):
            leftover.unlink(missing_ok=True)
        connection = _connect(new, "rwc")
        try:
            connection.execute("PRAGMA synchronous = OFF")  # all of it is synced below
            connection.execute(f"PRAGMA page_size = {_PAGE}")
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            for statement in migrations(0):
                connection.execute(statement)
            connection.execute("PRAGMA journal_mode = WAL")
        finally:
            connection.close()
        disk.sync_path(new)
        os.replace(new, path)
        disk.sync_path(path.parent)
    except (OSError, sqlite3.Error) as error:
        raise UnreadableJournal(
            str(path),
            f"it cannot be created ({error})",
            "Check that the folder is writable and the disk is not full, or choose another place",
        ) from error


def format_of(connection: sqlite3.Connection) -> int:
    """The version of the tables."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def migrations(version: int) -> list[str]:
    """The statements that make today's tables out of those of a version; for one transaction."""
    if version == VERSION:
        return []
    script = "".join(MIGRATIONS[version:])
    statements = [each.strip() for each in script.split(";") if each.strip()]
    return [*statements, f"PRAGMA user_version = {VERSION}"]
