"""What path claims mean on disk: symlinks, folders and the case rule of the file system.

The kernel compares patterns as text. So before it sees a claim, the claim is rewritten to the one
spelling of the files that it means. This happens at submit: a link that is created or changed later
is not followed.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from interlock.errors import ClaimOutsideWorkspace, InvalidOption
from interlock.model.claim import Claim

_SPECIAL = re.compile(r"[*?\[{}\\]")
_ESCAPED = re.compile(r"\\([*?\[\]{}\\])")


class ResolvedClaims(tuple[Claim, ...]):
    """Claims that `resolve` has returned, and that it returns again without looking them up."""

    __slots__ = ()


class WorkspacePaths:
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
        """Return the claims in the one spelling that the kernel compares.

        Symlinks in the part before the first wildcard are followed, and a plain name that is a
        folder means everything in it. `known` caches the lookups of one submission; no longer,
        because links and folders come and go. ClaimOutsideWorkspace for a path that leaves it.
        """
        if not claims or isinstance(claims, ResolvedClaims):
            return claims
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
            return claim  # the kernel raises the error for it
        parts = pattern.split("/")
        literal: list[str] = []
        for part in parts:
            name = _literal(part)
            if name is None:
                break
            literal.append(name)
        if pattern.startswith("/"):
            real = os.path.realpath(os.path.join("/", *literal))
        else:
            real = self._real(literal)
        inside = self._inside(real)
        if inside is None:
            raise ClaimOutsideWorkspace(
                f"task {task_id!r}: {claim} leads to {_shown(real)}, outside the workspace"
            )
        return self._spelled(claim, escaped(inside), "/".join(parts[len(literal) :]), real)

    def _real(self, names: list[str]) -> str:
        """Return the path of these names below the root, with symlinks followed.

        The root itself has none, so the usual claim costs one `lstat` for each of its names.
        """
        path = self._text.rstrip("/")
        for number, name in enumerate(names):
            if name in ("", "."):
                continue
            path = f"{path}/{name}"
            try:
                if name != ".." and not stat.S_ISLNK(os.lstat(path).st_mode):
                    continue
            except OSError:  # nothing is there, so there is no link to follow
                if ".." not in names[number:]:
                    return os.path.normpath("/".join((path, *names[number + 1 :])))
            return os.path.realpath(os.path.join(self._text, *names))
        return path or "/"

    def _spelled(self, claim: Claim, literal: str, tail: str, real: str) -> Claim:
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
        begins = real[: len(prefix)]
        if begins == prefix or (self.fold_case and begins.casefold() == prefix.casefold()):
            return real[len(prefix) :]
        return None


def _literal(part: str) -> str | None:
    """Return the file name that a part of a pattern stands for; None if it has a wildcard."""
    if _SPECIAL.search(part) is None:
        return part
    return None if _SPECIAL.search(_ESCAPED.sub("", part)) else _ESCAPED.sub(r"\1", part)


def escaped(path: str) -> str:
    """Return a pattern that matches this path only."""
    return _SPECIAL.sub(r"\\\g<0>", path)


def _shown(path: str) -> str:
    return path if len(path) < 200 else f"{path[:200]}..."


def _ignores_case(folder: str) -> bool:
    """Whether the file system treats `a` and `A` as the same name."""
    other = folder.swapcase()
    if other == folder:
        return False
    try:
        return os.path.samefile(folder, other)
    except OSError:
        return False
