"""Secrets: what was not passed on reaches nobody, and what an agent prints of them is hidden."""

from __future__ import annotations

import pytest

from tests.acceptance.command_line import Folder, folder

__all__ = ["folder"]

CANARY = "canary-7c1f0a-91"
SECRET = "hunter2-correct-horse"


def everything(folder: Folder, *words: str, code: int = 0, **environ: str) -> str:
    """All that is told of a run and kept of it, anywhere below the project."""
    told = [folder.say("run", *words, code=code, **environ)]
    told.append(folder.say("run", *words, "--json", code=code, **environ))
    for look in ("status", "status --json", "events", "events --json", "logs a", "why a --json"):
        told.append(folder.told(*look.split()))
    files = [each for each in folder.path.rglob("*") if each.is_file() and each.name != ".env"]
    told += [each.read_bytes().decode("utf-8", "replace") for each in files]
    return "\n".join(told)


def test_a_variable_of_the_user_is_seen_by_nobody_unless_it_is_passed_on(folder: Folder) -> None:
    folder.plan(a="env")
    found = everything(folder, "plan.yaml", CANARY=CANARY)
    assert "INTERLOCK_TASK=a" in found
    assert CANARY not in found
    folder.write(
        "interlock.yaml", 'agents: {sh: {command: [sh, -c, "{prompt}"], pass_env: [CANARY]}}'
    )
    folder.run("run", "plan.yaml", CANARY=CANARY)
    assert f"CANARY={CANARY}\n" in folder.told("logs", "a")


@pytest.mark.parametrize("where", ["environment", ".env"])
def test_a_declared_secret_that_an_agent_prints_is_hidden_everywhere(
    where: str, folder: Folder
) -> None:
    folder.write(
        "interlock.yaml", 'agents: {sh: {command: [sh, -c, "{prompt}"], secrets: MY_TOKEN}}'
    )
    folder.plan(a='test -n "$MY_TOKEN"; echo "key: $MY_TOKEN"; echo "$MY_TOKEN" >&2; exit 3')
    environ = {}
    if where == ".env":
        folder.write(".env", f"MY_TOKEN={SECRET}\n")
    else:
        environ["MY_TOKEN"] = SECRET
    found = everything(folder, "plan.yaml", code=1, **environ)
    assert "key: ***" in found
    assert SECRET not in found


def test_a_secret_of_the_project_is_hidden_and_given_to_nobody(folder: Folder) -> None:
    folder.write(
        "interlock.yaml", 'agents: {sh: {command: [sh, -c, "{prompt}"]}}\nsecrets: [MY_TOKEN]\n'
    )
    folder.plan(a=f'echo "mine: $MY_TOKEN."; echo {SECRET}')
    found = everything(folder, "plan.yaml", MY_TOKEN=SECRET)
    assert "mine: ." in found
    assert f"echo {SECRET}" in found  # the plan itself is the user's own file


def test_a_literal_secret_in_a_file_is_refused_without_being_repeated(folder: Folder) -> None:
    literal = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    folder.write(
        "interlock.yaml",
        f'agents: {{sh: {{command: [sh, -c, "{{prompt}}"], env: {{OPENAI_API_KEY: {literal}}}}}}}',
    )
    said = folder.refused("run", "true")
    assert "interlock.yaml:1:" in said
    assert "secret" in said
    assert literal not in said
