"""Progress bars on long work: on standard error, and only when asked for."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import ProgressColumn


@contextmanager
def progress_bar(
    description: str, total: int, enabled: bool, unit: str | None = None
) -> Iterator[Callable[[int], None]]:
    """Yield a function that moves the bar by a number of units, or does nothing.

    With the name of a ``unit``, the bar shows per cent and units a second instead of the count.
    """
    if not enabled:
        yield lambda amount: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    counts = [MofNCompleteColumn()] if unit is None else [TaskProgressColumn(), _rate_column(unit)]
    columns = (TextColumn("{task.description}"), BarColumn(), *counts, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(description, total=total)
        yield lambda amount: bar.advance(task, amount)


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
