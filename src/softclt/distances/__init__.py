"""Distances between series in data space: which pairs are alike.

A new distance is a kernel over pairs (see `softclt.distances.base`) and a line
``@distances.register(name, elastic=..., symmetric=..., window=...)``.
"""

from softclt.distances import elastic, pointwise  # noqa: F401 - enters them in the registry
from softclt.distances.base import Ragged, compiled, distances, per_pair
from softclt.distances.normalize import normalize_distances
from softclt.distances.pairwise import pairwise_distance
from softclt.distances.tam import tam_from_path

__all__ = [
    "Ragged",
    "compiled",
    "distances",
    "normalize_distances",
    "pairwise_distance",
    "per_pair",
    "tam_from_path",
]
