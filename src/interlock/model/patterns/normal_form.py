"""The normal form of a path pattern: one spelling for the many that people write.

The language is described in `pattern.py`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from interlock.errors import ClaimOutsideWorkspace, InvalidPattern
from interlock.model.patterns import charset
from interlock.model.patterns.segment import DEPTH, RUN, Glob, Piece, Segment
from interlock.model.patterns.syntax import Token, Tokens, expand_braces, invalid

_SPECIAL = re.compile(r"[*?\[\]{}\\\0]")


def normal_text(text: str, *, fold_case: bool) -> str:
    """Return text in the form in which names are compared."""
    normal = unicodedata.normalize("NFC", text)
    if not fold_case:
        return normal
    # One character for one, as file systems fold; otherwise `?` would not match a `ß` that became
    # `ss`. Folding can decompose a character, so the form is restored afterwards.
    return unicodedata.normalize("NFC", "".join(map(charset.fold_character, normal)))


def normal_segments(text: str, *, fold_case: bool) -> Iterator[list[Segment]]:
    """Yield the segments of each alternative; `**` comes last where it is written as a folder."""
    if not text.strip():
        raise InvalidPattern(text, 0, "it is blank; name a path, or write '.' for the workspace")
    if not _SPECIAL.search(text):  # Most claims are plain paths: no tokens needed.
        words = normal_text(text, fold_case=fold_case).split("/")
        yield _resolve(text, ((0, word) for word in words))
        return
    for tokens in expand_braces(text, fold_case=fold_case):
        yield _resolve(text, _split(tokens, fold_case))


def _resolve(text: str, written: Iterable[tuple[int, Segment]]) -> list[Segment]:
    """Remove `.`, `..` and the empty names between repeated slashes."""
    segments: list[Segment] = []
    names_folder = False
    for index, (at, segment) in enumerate(written):
        if segment == "" and index == 0:
            raise ClaimOutsideWorkspace(
                f"{text!r} is an absolute path; write it relative to the workspace: 'src/api/'"
            )
        names_folder = segment in ("", ".", "..")
        if segment == "..":
            _climb(text, at, segments)
        elif not names_folder and not (segment is DEPTH and segments[-1:] == [DEPTH]):
            segments.append(segment)
    if names_folder and segments[-1:] != [DEPTH]:
        segments.append(DEPTH)
    return segments


def _climb(text: str, at: int, segments: list[Segment]) -> None:
    if not segments:
        raise ClaimOutsideWorkspace(
            f"{text!r} is outside the workspace; claim paths inside it, use a folder further up as "
            "the workspace, or claim a name for it with `uses`"
        )
    if not isinstance(segments[-1], str):
        raise invalid(text, at, "'..' after a segment with wildcards; write the path without it")
    segments.pop()


def _split(tokens: Tokens, fold_case: bool) -> Iterator[tuple[int, Segment]]:
    """Yield the segments between the slashes, each with its position."""
    part: Tokens = []
    for token in [*tokens, Token(0, "/")]:
        if token.value != "/":
            part.append(token)
            continue
        yield part[0].at if part else 0, _segment([each.value for each in part], fold_case)
        part = []


def _segment(values: list[str | Piece], fold_case: bool) -> Segment:
    if values == [RUN, RUN]:
        return DEPTH
    joined: list[str | Piece] = []
    for value in values:
        last = joined[-1] if joined else None
        if isinstance(value, str) and isinstance(last, str):
            joined[-1] = last + value
        elif not (value is RUN and last is RUN):
            joined.append(value)
    if all(isinstance(each, str) for each in joined):
        return normal_text("".join(map(str, joined)), fold_case=fold_case)
    return Glob(tuple(_pieces(joined, fold_case)))


def _pieces(joined: Iterable[str | Piece], fold_case: bool) -> Iterator[Piece]:
    for each in joined:
        if isinstance(each, str):
            # Not earlier: only after brace expansion is it known which accent follows which letter.
            yield from map(charset.single, normal_text(each, fold_case=fold_case))
        else:
            yield each
