"""Loops as machine code, for the rooms that have any."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F, **options: Any) -> F:
    """Compile a loop to machine code that runs without the GIL and is kept for the next process.

    ``options`` are numba's.
    """
    try:
        return cast(F, njit(cache=True, nogil=True, **options)(function))
    except RuntimeError:  # neither the package's nor the user's cache folder can be written
        return cast(F, njit(nogil=True, **options)(function))
