"""What claims mean on disk: symlinks, folders and the case of letters."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from interlock.errors import ClaimOutsideWorkspace, InvalidOption
from interlock.model.claim import Claim

_WILD = frozenset("*?[{\\")


class Workspace:
    """The folder that path claims are relative to."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            self.root = Path(folder).resolve(strict=True)
        except (OSError, TypeError, RuntimeError) as error:
            raise InvalidOption(f"workspace {folder!r} is no folder: {error}") from None
        if not self.root.is_dir():
            raise InvalidOption(f"workspace {folder!r} is no folder")
        self._text = str(self.root)
        self.fold_case = _ignores_case(self._text)

    def resolve(
        self, task_id: str, claims: tuple[Claim, ...], known: dict[Claim, Claim]
    ) -> tuple[Claim, ...]:
        """The claims in the one spelling that the kernel compares.

        Symlinks in the part before the first wildcard are followed, and a plain name that is a
        folder means all that is in it. `known` remembers what was looked up for one submission; no
        longer, because links and folders come and go.
        """
        if not claims:
            return ()
        resolved = []
        for claim in claims:
            found = known.get(claim)
            if found is None:
                found = known[claim] = self._resolve(task_id, claim) if claim.is_path else claim
            resolved.append(found)
        return tuple(resolved)

    def _resolve(self, task_id: str, claim: Claim) -> Claim:
        pattern = claim.resource
        if not pattern or "\0" in pattern:
            return claim  # the kernel has the error for it
        parts = pattern.split("/")
        wild = next((i for i, part in enumerate(parts) if not _WILD.isdisjoint(part)), len(parts))
        real = os.path.realpath(os.path.join(self._text, "/".join(parts[:wild])) or "/")
        inside = self._inside(real)
        if inside is None:
            raise ClaimOutsideWorkspace(
                f"task {task_id!r}: {claim} leads to {_shown(real)}, outside the workspace"
            )
        return self._spelled(claim, inside, parts[wild:], real)

    def _spelled(self, claim: Claim, literal: str, rest: Iterable[str], real: str) -> Claim:
        tail = "/".join(rest)
        if tail:
            pattern = f"{literal}/{tail}" if literal else tail
        elif not literal:
            pattern = "**"
        elif claim.resource.endswith("/") or os.path.isdir(real):
            pattern = f"{literal}/"
        else:
            pattern = literal
        return claim if pattern == claim.resource else Claim(pattern, claim.mode)

    def _inside(self, real: str) -> str | None:
        if real == self._text:
            return ""
        prefix = self._text.rstrip("/") + "/"
        return real[len(prefix) :] if real.startswith(prefix) else None


def _shown(path: str) -> str:
    return path if len(path) < 200 else f"{path[:200]}..."


def _ignores_case(folder: str) -> bool:
    """Whether the file system takes `a` and `A` for one name."""
    other = folder.swapcase()
    if other == folder:
        return False
    try:
        return os.path.samefile(folder, other)
    except OSError:
        return False
