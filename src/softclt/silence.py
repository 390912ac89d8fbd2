"""Warnings of other packages that are expected, and say nothing to the user."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

_FILTERS = RLock()  # the filters are of the process: two threads would put back each other's


@contextmanager
def without_warnings(category: type[Warning] = Warning, message: str = "") -> Iterator[None]:
    """Hide those of a kind whose text begins so, one thread at a time: keep the block short."""
    with _FILTERS, warnings.catch_warnings():
        warnings.filterwarnings("ignore", message, category)
        yield
