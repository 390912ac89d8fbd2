"""Packages that need not be installed: whoever needs one that is missing is told how to get it."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needed(words: str) -> Iterator[None]:
    """Within it, a package that cannot be imported is an error with these words."""
    try:
        yield
    except ImportError as error:
        raise ModuleNotFoundError(words, name=error.name) from None
