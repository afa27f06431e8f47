"""`FileOwnership`: which agent type owns which paths of a workspace."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Concatenate, Generic, ParamSpec, TypeVar

from interlock.errors import InvalidOwnership
from interlock.model.claim import Patterns, write
from interlock.model.ownership import Ownership, SharedOwnership
from interlock.model.patterns.pattern import Pattern
from interlock.plan.project_file import FILE, find_project, load_project
from interlock.runtime.claim_paths import WorkspacePaths

P = ParamSpec("P")
T = TypeVar("T")

_IGNORED_FOLDERS = frozenset({".git", ".interlock"})
_WILDCARD = re.compile(r"[*?\[\]{}\\]")


@dataclass(frozen=True, slots=True)
class Unowned:
    """A file that no agent type owns, or a folder (with a slash) without any owned path."""

    path: str

    def __str__(self) -> str:
        return f"{self.path} has no owner"


class _ProjectMethod(Generic[P, T]):
    """A method that can also be called on the class: it then applies to the project file."""

    def __init__(self, function: Callable[Concatenate[FileOwnership, P], T]) -> None:
        self._function = function
        functools.update_wrapper(self, function)  # type: ignore[arg-type]

    def __get__(self, instance: FileOwnership | None, owner: type[FileOwnership]) -> Callable[P, T]:
        # Read the project file when the method is called, not when it is only looked at.
        @functools.wraps(self._function)
        def method(*args: P.args, **kwargs: P.kwargs) -> T:
            rules = owner.of_project() if instance is None else instance
            return self._function(rules, *args, **kwargs)

        return method


class FileOwnership:
    """Rules that say which agent type owns which paths: `{"architect": ["docs/", "specs/*.md"]}`.

    An agent type may modify what it owns. A path without an owner may be modified by none, unless
    the rules are `open`. Paths are relative to the workspace or absolute; symlinks are followed.
    Where two agent types own a path, the first in the rules has it; `validate_rules()` reports it.

    Called on the class, as in `FileOwnership.get_owner("a.py")`, a method applies to the rules of
    the project file (`owns` of its agents).
    """

    def __init__(
        self,
        rules: Mapping[str, str | Iterable[str]],
        *,
        open: bool = False,
        workspace: str | os.PathLike[str] = ".",
    ) -> None:
        self._workspace = WorkspacePaths(workspace)
        self._rules = Ownership(rules, open=open, fold_case=self._workspace.fold_case)

    @classmethod
    def of_project(cls, start: str | os.PathLike[str] = ".") -> FileOwnership:
        """Return the rules of the project file in this folder, or in the nearest one above it."""
        path = find_project(start)
        if path is None:
            raise InvalidOwnership(
                f"there is no {FILE} in this folder or above it that says what agents own; "
                "write FileOwnership({agent: patterns})"
            )
        agents = load_project(path).agents
        return cls(
            {name: each.owns for name, each in agents.items() if each.owns}, workspace=path.parent
        )

    @_ProjectMethod
    def get_owned_paths(self, agent: str) -> list[str]:
        """Return the patterns that an agent type owns, as written; none for an unknown type."""
        return list(self._rules.owned_by(agent))

    get_allowed_paths = get_owned_paths

    @_ProjectMethod
    def get_owner(self, path: str | os.PathLike[str]) -> str | None:
        """Return the agent type that owns a path; None if there is none, or it leads outside."""
        inside = self._inside(path)
        return None if inside is None else self._rules.owner_of(inside)

    @_ProjectMethod
    def check_ownership(self, agent: str, path: str | os.PathLike[str]) -> bool:
        """Whether an agent type may modify a path."""
        inside = self._inside(path)
        return inside is not None and self._rules.allows(agent, inside)

    @_ProjectMethod
    def validate_rules(self) -> list[SharedOwnership | Unowned]:
        """Return overlaps between rules, and paths of the workspace without an owner.

        Empty if there are no problems. Rules that are `open` have no gaps.
        """
        gaps = [] if self._rules.open else [Unowned(each) for each in self._gaps("")]
        return [*self._rules.problems(), *gaps]

    def require_ownership(self, agent: str, files: Patterns) -> None:
        """Raise InvalidOwnership unless an agent type may modify all paths of these patterns."""
        for file in (files,) if isinstance(files, (str, PurePath)) else files:
            text = write(file).resource
            if _WILDCARD.search(text) is None:
                if not self.check_ownership(agent, text):
                    raise InvalidOwnership(_refusal(agent, text, self.get_owner(text)))
            else:
                self._require_pattern(agent, self._rules.parse(text))

    def _require_pattern(self, agent: str, wanted: Pattern) -> None:
        conflict = self._rules.conflict(agent, wanted)
        if conflict is not None:
            owner, witness = conflict
            text = f"{wanted.text}: it matches {witness} too"
            raise InvalidOwnership(_refusal(agent, text, owner))
        if not (self._rules.open or self._rules.covers(wanted, [agent])):
            raise InvalidOwnership(
                f"{agent} does not own all of {wanted.text}, as far as the rules show; "
                "list the files, or let it own the whole folder"
            )

    def _inside(self, path: str | os.PathLike[str]) -> str | None:
        root = os.fspath(self._workspace.root)
        real = os.path.realpath(os.path.join(root, os.fspath(path)))
        inside = os.path.relpath(real, root)
        return None if inside == ".." or inside.startswith("../") else inside

    def _gaps(self, folder: str) -> Iterator[str]:
        """Yield files without an owner, and whole folders that no rule reaches."""
        for entry in sorted(os.scandir(self._workspace.root / folder), key=lambda each: each.name):
            path = f"{folder}{entry.name}"
            if not entry.is_dir(follow_symlinks=False):
                if self._rules.owner_of(path) is None:
                    yield path
            elif entry.name not in _IGNORED_FOLDERS:
                everything = self._rules.parse(_WILDCARD.sub(r"\\\g<0>", path) + "/")
                if not self._rules.reaches(everything):
                    yield f"{path}/"
                elif not self._rules.covers(everything):
                    yield from self._gaps(f"{path}/")


def _refusal(agent: str, text: str, owner: str | None) -> str:
    reason = f"belongs to {owner}" if owner else "has no owner, or is outside the workspace"
    return f"{agent} may not modify {text}, which {reason}; give the task to the owner"
