"""A process that follows a run: `python follower.py JOURNAL RUN`. Prints what it saw."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from interlock.journal import follow as following
from interlock.journal.reader import Reader

if __name__ == "__main__":
    looks: list[float] = []
    look = following._look

    def counted(*args: Any) -> Any:
        looks.append(time.monotonic())
        return look(*args)

    following._look = counted  # type: ignore[assignment]
    with Reader(sys.argv[1]) as reader:
        print("ready", flush=True)
        numbers = [event.number for event in following.follow(reader, reader.run(sys.argv[2]))]
    # A look that finds something is followed by another one at once: there may be more.
    pages = len(numbers) // 1000 + 1
    seconds = looks[-1] - looks[0]
    print(json.dumps({"numbers": numbers, "looks": len(looks), "pages": pages, "took": seconds}))
