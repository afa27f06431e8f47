"""Formats times, tokens and money."""

from __future__ import annotations

from interlock.model.duration import span


def clock(seconds: float) -> str:
    """A running time, in a stable width: `0:07`, `12:04`, `1:02:04`, `3d 04h`."""
    whole = int(max(0.0, seconds))
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    if hours >= 24:
        return f"{hours // 24}d {hours % 24:02}h"
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def about(seconds: float) -> str:
    """An estimate, rounded to its accuracy: `about 20 s`, `about 4 min`."""
    if seconds >= 3600:
        step = 300
    elif seconds >= 90:
        step = 60
    else:
        step = 10 if seconds > 30 else 5
    rounded = max(step, round(seconds / step) * step)
    return f"about {rounded} s" if rounded < 60 else f"about {span(rounded)}"


def tokens(count: int) -> str:
    """`850 tokens`, `12k tokens`, `1.3M tokens`."""
    if count >= 999_500:
        return f"{count / 1_000_000:.1f}M tokens"
    if count >= 1_000:
        return f"{count / 1_000:.{0 if count >= 10_000 else 1}f}k tokens"
    return f"{count} token" + "s" * (count != 1)


def money(cost: float) -> str:
    """A cost as agents report it: `$0.42`."""
    return f"${cost:,.2f}" if cost >= 0.01 else f"${cost:.4f}"


def plural(count: int, word: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{count} {word}" + "s" * (count != 1)
