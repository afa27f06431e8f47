"""Secrets that were written into a file by mistake."""

from __future__ import annotations

import re
from typing import Final

# What a secret begins with, what follows, and what it is. Each pattern begins with literal text and
# every repetition is bounded, so searching a file is cheap whatever it contains.
_SHAPES: Final = [
    ("sk-", r"(?<![A-Za-z0-9]sk-)[A-Za-z0-9_-]{16,200}", "an API key"),
    ("ghp_", r"[A-Za-z0-9]{20,200}", "a GitHub token"),
    ("gho_", r"[A-Za-z0-9]{20,200}", "a GitHub token"),
    ("ghs_", r"[A-Za-z0-9]{20,200}", "a GitHub token"),
    ("ghu_", r"[A-Za-z0-9]{20,200}", "a GitHub token"),
    ("github_pat_", r"[A-Za-z0-9_]{20,200}", "a GitHub token"),
    ("glpat-", r"[A-Za-z0-9_-]{16,200}", "a GitLab token"),
    ("AKIA", r"[A-Z0-9]{16}\b", "an AWS key"),
    ("ASIA", r"[A-Z0-9]{16}\b", "an AWS key"),
    ("AIza", r"[A-Za-z0-9_-]{30,60}", "a Google key"),
    ("xox", r"[abeoprs]-[A-Za-z0-9-]{10,200}", "a Slack token"),
    ("hf_", r"(?<![A-Za-z0-9_]hf_)[A-Za-z0-9]{20,200}", "a Hugging Face token"),
    ("eyJ", r"[A-Za-z0-9_-]{10,200}\.eyJ[A-Za-z0-9_-]{10,2000}", "a token (JWT)"),
    ("-----BEGIN ", r"[A-Z ]{0,30}PRIVATE KEY[\s\S]{0,10000}", "a private key"),
    ("://", r"[^/\s:@{}$]{1,100}:[^/\s:@{}$]{1,200}@", "a password in a URL"),
]
_SHAPED = [(start, re.compile(re.escape(start) + rest), what) for start, rest, what in _SHAPES]
_NAME = re.compile(
    r"(?:^|[_-])(?:API_?KEY|ACCESS_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE)$",
    re.IGNORECASE,
)
ELSEWHERE: Final = (
    "secrets do not belong in this file: put the value into the environment or into .env, and the "
    "name of the variable under `secrets`"
)


def secret_in(text: str) -> str | None:
    """Return the kind of secret that a text contains, if one is recognized."""
    for start, shape, what in _SHAPED:
        if start in text and shape.search(text):
            return what
    return None


def may_have_secrets(text: str) -> bool:
    """Whether the values of a file have to be checked one by one.

    Decided by its text. With a backslash in it, a value may differ from its spelling.
    """
    return "\\" in text or secret_in(text) is not None


def hidden(text: str) -> str:
    """Return the text with `***` in place of secrets, for messages."""
    for start, shape, _ in _SHAPED:
        if start in text:
            text = shape.sub("***", text)
    return text


def names_a_secret(name: str) -> bool:
    """Whether the name of a variable says that its value is a secret."""
    return _NAME.search(name) is not None
