"""`interlock doctor`: checks the machine and the project for what would break a run."""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from typing import NamedTuple

from interlock.errors import InterlockError
from interlock.plan.env_file import secret_values
from interlock.plan.records import Project
from interlock.runtime.machine import containment
from interlock.runtime.project import ProjectAgents
from interlock.service.project_folder import ProjectFolder
from interlock.views.cli.last_run import facts_of
from interlock.views.terminal.figures import plural


class Finding(NamedTuple):
    """The result of one check."""

    what: str
    fine: bool
    said: str
    help: str = ""

    @property
    def mark(self) -> str:
        """A check mark, or a cross."""
        return "✓" if self.fine else "✗"


def examine(folder: ProjectFolder) -> list[Finding]:
    """Run all checks. A failed check does not prevent the others."""
    return [*_machine(), *_folder(folder), *_project(folder)]


def _machine() -> Iterator[Finding]:
    versions = f"{platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    yield Finding("Python", sys.version_info >= (3, 11), versions)
    git = shutil.which("git")
    yield Finding("git", git is not None, git or "not found", "" if git else "Install git.")
    yield _stopping()


_STOPS = {
    "namespace": "in a PID namespace, which the kernel kills as a whole",
    "cgroup": "in a control group, which the kernel kills as a whole",
    "subreaper": "as a subreaper, which adopts orphaned processes",
    "group": "by process group: processes that leave the group may outlive a cancel",
}


def _stopping() -> Finding:
    try:
        found = containment()
    except InterlockError as error:
        return Finding("stopping programs", False, str(error))
    return Finding("stopping programs", found != "group", _STOPS[found])


def _folder(folder: ProjectFolder) -> Iterator[Finding]:
    writable = os.access(folder.folder if folder.folder.is_dir() else folder.root, os.W_OK)
    yield Finding(
        "folder", writable, str(folder.root), "" if writable else "The folder is not writable."
    )
    for problem in folder.misplaced():
        yield Finding("folder", False, problem)
    if not folder.journal.exists():
        yield Finding("journal", True, "none yet")
        return
    try:
        facts = facts_of(folder)
    except InterlockError as error:
        yield Finding("journal", False, str(error))
        return
    if folder.is_active():
        yield Finding("journal", True, f"run {facts.run_id} is in progress")
    elif facts.ended_at is None:
        said = f"run {facts.run_id} was interrupted: {facts.progress}"
        yield Finding("journal", True, said, "Resume it with `interlock run --resume`.")
    else:
        yield Finding("journal", True, f"last run {facts.run_id}: {facts.progress}")


def _project(folder: ProjectFolder) -> Iterator[Finding]:
    try:
        project = folder.project()
    except InterlockError as error:
        yield Finding("project file", False, str(error))
        return
    if project.path is None:
        help_ = "`interlock init` writes one."
        yield Finding("project file", False, f"none in {folder.root} or above", help_)
        return
    agents = plural(len(project.agents), "agent")
    yield Finding("project file", True, f"{project.path.name}, {agents}")
    yield from _secrets(project)
    made = ProjectAgents(project)
    for spec in project.agents.values():
        if spec.command is not None:
            program = spec.command.argv[0]
            found = shutil.which(program)
            help_ = "" if found else f"Install {program}, or correct the command of {spec.name}."
            yield Finding(f"agent {spec.name}", bool(found), found or f"{program} not found", help_)
            continue
        try:
            made.named(spec.name)
        except InterlockError as error:
            yield Finding(f"agent {spec.name}", False, str(error))
        else:
            yield Finding(f"agent {spec.name}", True, str(spec.python))


def _secrets(project: Project) -> Iterator[Finding]:
    known = secret_values(project, os.environ)
    for name in project.secrets:
        there = name in known
        where = "is set" if there else "is not set"
        file = project.env_file or ".env"
        help_ = "" if there else f"Set it in the environment, or in {file}."
        yield Finding(f"secret {name}", there, where, help_)
