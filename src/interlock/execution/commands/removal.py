"""Removing a folder of ours, whatever an agent has put there: links, unreadable or deep folders.

No link is followed: neither its target nor anything below that is touched. Folders inside are moved
up before they are emptied, so that a million nested ones need no more than two descriptors and no
path that is longer than the system allows.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


def remove(folder: Path) -> None:
    """Remove a folder, or a link or file in its place. What cannot be removed is left."""
    with suppress(OSError), _opened(str(folder.parent)) as parent:
        if _is_away(folder.name, parent):
            return
        with suppress(OSError), _opened(folder.name, parent) as top:
            _empty(top)
        os.rmdir(folder.name, dir_fd=parent)


def _empty(top: int) -> None:
    folders = [each for each in os.listdir(top) if not _is_away(each, top)]
    while folders:
        name = folders.pop()
        with suppress(OSError), _opened(name, top) as inside:
            for each in os.listdir(inside):
                if not _is_away(each, inside):
                    moved = f".{uuid4().hex}"
                    with suppress(OSError):
                        os.rename(each, moved, src_dir_fd=inside, dst_dir_fd=top)
                        folders.append(moved)
        with suppress(OSError):
            os.rmdir(name, dir_fd=top)


def _is_away(name: str, parent: int) -> bool:
    """Unlink what is no folder; make a folder accessible. Return whether nothing is there now."""
    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
            os.chmod(name, 0o700, dir_fd=parent)
            return False
        os.unlink(name, dir_fd=parent)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


@contextmanager
def _opened(name: str, parent: int | None = None) -> Iterator[int]:
    # The folder that ours are in may be a link of the user's.
    flags = _FOLDER if parent is None else _FOLDER | os.O_NOFOLLOW
    opened = os.open(name, flags, dir_fd=parent)
    try:
        yield opened
    finally:
        os.close(opened)
