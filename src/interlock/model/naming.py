"""How a text writes the names in it."""

from __future__ import annotations

from collections.abc import Callable

Naming = Callable[[object], str]
"""Turns a name, or a claim, into text: `str`, or a function that shortens it to fit a line."""
