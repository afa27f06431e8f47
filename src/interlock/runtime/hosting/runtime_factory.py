"""Make the Runtimes of a host from the same options."""

from __future__ import annotations

from typing import Any

from interlock.runtime.runtime import Runtime


class RuntimeFactory:
    """Makes a Runtime from options each time it is called; only the first one resumes a run.

    `options` may be changed; the next Runtime gets them.
    """

    def __init__(self, resume: bool | str | None, **options: Any) -> None:
        self.options = options
        self._resume = resume

    def __call__(self) -> Runtime:
        resume, self._resume = self._resume, None  # later runs are new ones
        return Runtime(**self.options, resume=resume)
