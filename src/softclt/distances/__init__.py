"""Distances between series in data space: which pairs are alike.

A new distance is a kernel over pairs (see `softclt.distances.registration`) and a line
``@distances.register(name, elastic=..., symmetric=..., window=...)``.
"""

from typing import TYPE_CHECKING, Any

from softclt.compilation import compiled as compiled
from softclt.distances import elastic, pointwise  # noqa: F401 - enters them in the registry
from softclt.distances.normalize import normalize_distances as normalize_distances
from softclt.distances.pairwise import pairwise_distance as pairwise_distance
from softclt.distances.registration import Ragged as Ragged
from softclt.distances.registration import distances as distances
from softclt.distances.registration import per_pair as per_pair
from softclt.distances.store import DistanceStore as DistanceStore
from softclt.distances.store import open_store as open_store
from softclt.distances.tam import tam_from_path as tam_from_path

if TYPE_CHECKING:
    from softclt.distances.batches import BatchDistances as BatchDistances


def __getattr__(name: str) -> Any:
    if name == "BatchDistances":  # needs torch, which workers of a store start quicker without
        from softclt.distances.batches import BatchDistances

        return BatchDistances
    raise AttributeError(f"module 'softclt.distances' has no attribute {name!r}")
