"""Progress of long work, on standard error and only when asked for: bars, or lines in a log."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from softclt.plaintext import visible

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

EVERY = 30.0  # seconds between two lines where no bar can be drawn

_quiet = False  # of the process: bars are also drawn by threads


@contextmanager
def quietly() -> Iterator[None]:
    """Within it no bar is drawn and no line is written, whoever asks for it."""
    global _quiet
    before, _quiet = _quiet, True
    try:
        yield
    finally:
        _quiet = before


def is_quiet() -> bool:
    """Whether nobody wants to hear of progress."""
    return _quiet


@contextmanager
def progress_bar(
    description: str, total: int | None, enabled: bool, unit: str | None = None
) -> Iterator[Callable[[int], None]]:
    """Yield a function that moves the bar by a number of units, or does nothing.

    Where standard error is no terminal, there is a line every 30 seconds instead.

    Args:
        description: What is done.
        total: How many units there are; None if nobody counts.
        enabled: Whether there is a bar.
        unit: Its name; the bar then shows per cent and units a second instead of the count.
    """
    if not enabled or _quiet:
        yield lambda amount: None
        return
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        with _lines(visible(description), total) as advance:
            yield advance
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        ProgressColumn,
        TaskProgressColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    counts: list[ProgressColumn] = [TimeElapsedColumn()]
    if total is not None and unit is None:
        counts = [MofNCompleteColumn(), TimeRemainingColumn()]
    elif unit is not None:
        counts = [TaskProgressColumn(), _rate_column(unit), TimeRemainingColumn()]
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), *counts)
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(visible(description), total=total)
        yield lambda amount: bar.advance(task, amount)


@contextmanager
def _lines(description: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A line every 30 seconds, whether or not the work moves."""
    start, ended, done = time.monotonic(), threading.Event(), 0

    def advance(amount: int) -> None:
        nonlocal done
        done += amount

    def speak() -> None:
        while not ended.wait(EVERY):
            seconds = time.monotonic() - start
            words = f"softclt: {description}: after {time_in_words(seconds)}"
            if total is not None:
                words += f" {done} of {total}"
                if 0 < done < total:
                    words += f", about {time_in_words(seconds * (total - done) / done)} to go"
            sys.stderr.write(f"{words}\n")
            sys.stderr.flush()

    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield advance
    finally:
        ended.set()
        speaker.join()


def time_in_words(seconds: float) -> str:
    """A length of time in a unit that suits it.

    Example:
        >>> time_in_words(42), time_in_words(600), time_in_words(36000)
        ('42 s', '10 min', '10.0 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def rate_in_words(rate: float, unit: str) -> str:
    """A number of units a second with three digits.

    Example:
        >>> rate_in_words(7.25e9, "cells"), rate_in_words(312, "cells")
        ('7.25 billion cells/s', '312 cells/s')
    """
    for size, name in ((1e9, " billion"), (1e6, " million")):
        if rate >= size:
            return f"{rate / size:.3g}{name} {unit}/s"
    return f"{rate:.0f} {unit}/s"


def _rate_column(unit: str) -> "ProgressColumn":
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Rate(ProgressColumn):
        """Speed of late; nothing before the first step."""

        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if speed is None else rate_in_words(speed, unit))

    return Rate()
