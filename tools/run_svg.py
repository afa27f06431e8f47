"""Draws one frame of the live view as SVG, for a README or a report."""

from __future__ import annotations

import html
import io

from rich.console import Console
from rich.terminal_theme import TerminalTheme

from interlock.journal.state.run_facts import RunFacts
from interlock.views.forecast import seconds_left
from interlock.views.terminal import safe_text
from interlock.views.terminal.frame import Why, frame

_THEME = TerminalTheme(
    (22, 24, 29),
    (214, 218, 226),
    [
        (22, 24, 29),
        (240, 113, 120),
        (134, 199, 133),
        (229, 192, 110),
        (110, 160, 235),
        (200, 140, 230),
        (95, 200, 215),
        (214, 218, 226),
    ],
)

# Rich's own format fetches fonts from another host; a picture must not. Every text carries its
# length, so any monospaced font keeps the columns.
_FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">
<title>TITLE</title>
<style>
.{unique_id}-matrix {{
  font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width;
}}
.{unique_id}-title {{ font-family: system-ui, sans-serif; font-size: 16px; opacity: 0.7; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def svg(facts: RunFacts, why: Why, *, width: int = 100, height: int = 26, title: str = "") -> str:
    """Return the run at this moment as a terminal of this size would show it."""
    console = Console(
        file=io.StringIO(),
        record=True,
        width=width,
        height=height,
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
        _environ={},
    )
    for line in frame(facts, why, width, height, left=seconds_left(facts)):
        console.print(line, no_wrap=True, crop=False, overflow="ignore")
    title = safe_text.line(title or facts.plan or "interlock")
    braces = title.translate({ord("{"): "{{", ord("}"): "}}"})
    return console.export_svg(
        title=title,
        theme=_THEME,
        code_format=_FORMAT.replace("TITLE", html.escape(braces)),
        unique_id="interlock",
    )
