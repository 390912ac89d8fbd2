"""How series become embeddings, block by block."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from softclt.data.sources import ParquetSource, SeriesSource
from softclt.validation import Floats32

_AT_ONCE = 2**24  # values, or numbers of embeddings, that are in memory at the same time
_NUMBERS = 1024  # that an embedding may have, for that


@dataclass(frozen=True)
class Recipe:
    """A model and what is asked of it; it can be sent to other machines.

    Attributes:
        model: With ``encode``, or with ``transform`` alone for embeddings of whole series.
        level: See :func:`softclt.inference.encode` for this and the next ones.
        length: Steps of the longest series of all parts; 0 where there are no parts.
    """

    model: Any
    level: str = "instance"
    window: int | None = None
    stride: int | None = None
    causal: bool = False
    context: int = 200
    length: int = 0

    @property
    def step(self) -> int:
        """Steps from one embedding of a series to its next."""
        return (self.stride or self.window or 1) if self.level == "window" else 1

    @property
    def options(self) -> dict[str, Any]:
        """Of ``encode``."""
        other = ("model", "length")
        return {name: value for name, value in vars(self).items() if name not in other}

    def embed(self, X: Any) -> Floats32:
        """Embeddings of series ``(N, D, T)``: ``(N, M)`` or ``(N, W, M)``."""
        if not hasattr(self.model, "encode"):
            found: Floats32 = self.model.transform(X)
            return found
        short = min(self.window or 0, self.length) - X.shape[-1]
        if short > 0:  # another part has longer ones
            X = np.pad(X, ((0, 0), (0, 0), (0, short)), constant_values=np.nan)
        encoded: Floats32 = self.model.encode(X, **self.options)
        return encoded


def embedded_blocks(recipe: Recipe, source: SeriesSource) -> Iterator[tuple[list[Any], Floats32]]:
    """Ids and embeddings of all series in their order, of some at a time."""
    if isinstance(source, ParquetSource):
        source.held_bytes = 0  # each piece is needed once
    n, d, t = source.shape
    numbers = _NUMBERS if recipe.level == "instance" else _NUMBERS * t
    size = max(1, _AT_ONCE // max(d * t, numbers))
    for start in range(0, n, size):
        rows = np.arange(start, min(start + size, n))
        try:
            found = recipe.embed(source.take(rows))
        except ValueError as error:
            place = f"{source.name}, series {rows[0]} to {rows[-1]}"
            raise ValueError(f"{place}: {error}") from None
        yield source.ids_of(start, start + len(rows)), found
