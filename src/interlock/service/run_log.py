"""The structured log of a project's runs: a file that is rotated."""

from __future__ import annotations

import contextlib
import logging
import logging.handlers
from collections.abc import Iterator

from interlock.runtime.log import LOGGER, TextFormatter
from interlock.service.project_folder import ProjectFolder

_MAX_BYTES = 5_000_000


@contextlib.contextmanager
def logging_to(folder: ProjectFolder) -> Iterator[None]:
    """Write the log of everything that runs inside the block to the project's log file."""
    handler = logging.handlers.RotatingFileHandler(
        folder.log, maxBytes=_MAX_BYTES, backupCount=2, encoding="utf-8", delay=True
    )
    handler.setFormatter(TextFormatter())
    before = LOGGER.level, LOGGER.propagate
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    LOGGER.propagate = False
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        handler.close()
        LOGGER.level, LOGGER.propagate = before
