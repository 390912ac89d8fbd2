"""Distances between series in data space: which pairs are alike.

A new distance is a kernel over pairs (see `softclt.distances.registration`) and a line
``@distances.register(name, elastic=..., symmetric=..., window=...)``.
"""

from typing import TYPE_CHECKING, Any

from softclt.compilation import compiled
from softclt.distances import elastic, pointwise  # noqa: F401 - enters them in the registry
from softclt.distances.normalize import normalize_distances
from softclt.distances.pairwise import pairwise_distance
from softclt.distances.registration import Ragged, distances, per_pair
from softclt.distances.store import DistanceStore, open_store
from softclt.distances.tam import tam_from_path

if TYPE_CHECKING:
    from softclt.distances.batches import BatchDistances

__all__ = [
    "BatchDistances",
    "DistanceStore",
    "Ragged",
    "compiled",
    "distances",
    "normalize_distances",
    "open_store",
    "pairwise_distance",
    "per_pair",
    "tam_from_path",
]


def __getattr__(name: str) -> Any:
    if name == "BatchDistances":  # needs torch, which workers of a store start quicker without
        from softclt.distances.batches import BatchDistances

        return BatchDistances
    raise AttributeError(f"module 'softclt.distances' has no attribute {name!r}")
