"""No silence in a log: a line for every half minute in which a command says nothing."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from typing import Any

from softclt import progress

_PATIENCE = 1.1  # so that lines of progress, which know more, come first


class _Heard:
    """A stream that knows when something was last written to it."""

    def __init__(self, stream: Any) -> None:
        self._stream, self.last = stream, time.monotonic()

    def write(self, text: str) -> Any:
        """Write it."""
        self.last = time.monotonic()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def never_silent(doing: Callable[[], str]) -> Iterator[None]:
    """Say on stderr that work goes on, where that is a log and nothing else was said.

    Args:
        doing: What is being done, in words; empty where nothing is, but waiting for others.
    """
    if sys.stderr.isatty():
        yield
        return
    stream, began, ended = _Heard(sys.stderr), time.monotonic(), threading.Event()

    def silence() -> float:
        return progress.EVERY * _PATIENCE - (time.monotonic() - stream.last)

    def speak() -> None:
        while not ended.wait(max(silence(), 0.01)):
            if silence() > 0:
                continue
            if what := doing():
                after = progress.time_in_words(time.monotonic() - began)
                stream.write(f"softclt: {what}: still at work after {after}\n")
                stream.flush()
            stream.last = time.monotonic()

    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    try:
        with redirect_stderr(stream):
            yield
    finally:
        ended.set()
        speaker.join()
