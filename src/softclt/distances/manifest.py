"""What the distances of a store are of: the key, the manifest that keeps it, and the series."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from softclt.data.arrays import Arrays
from softclt.data.dataset import fingerprint
from softclt.distances.measure import Measure
from softclt.distances.registration import Ragged
from softclt.files import too_large, whole_file
from softclt.schema import FLAG, NUMBER, SIZE, TABLE, TEXT, Kind, check_entries, either, optional

FORMAT = 1
MANIFEST = "manifest.json"
SERIES = "series.npz"

# What distances depend on, and what messages call it.
KEY = {
    "series": "the fingerprint of the series",
    "n_series": "the number of series",
    "precision": "the precision of the series",
    "metric": "the metric",
    "window": "the window",
    "params": "the parameters of the metric",
    "unequal": "unequal",
    "version": "the version of the kernels",
}


_KINDS: dict[str, Kind] = {
    "series": TEXT,
    "n_series": SIZE,
    "precision": TEXT,
    "metric": TEXT,
    "window": optional(NUMBER),
    "params": TABLE,
    "unequal": TEXT,
    "version": either(NUMBER, TEXT),
    "tile": SIZE,
    "half": FLAG,
}
_LONGEST = 2**24  # bytes of a manifest
_TILE_BYTES = 512  # of memory that the place and the name of a tile take


class StoreError(ValueError):
    """A folder that holds no distances, other ones, or not all of them."""


def key_of(measure: Measure, x: Ragged) -> dict[str, Any]:
    """All that the distances of some series depend on, as JSON has it."""
    key = {
        "series": fingerprint(x.values, x.starts),
        "n_series": len(x),
        "precision": str(x.values.dtype),  # kernels follow it
        **measure.description(),
    }
    try:
        parts: dict[str, Any] = json.loads(json.dumps(key, default=lambda number: number.item()))
    except (AttributeError, TypeError, ValueError):
        raise StoreError(
            f"the parameters {key['params']} cannot be written as JSON; distances can be kept only "
            "if numbers, texts and lists say all that they depend on"
        ) from None
    return parts


def key_digits(key: dict[str, Any]) -> str:
    """Sixteen hex digits of a key, or of a manifest."""
    parts = {part: key[part] for part in KEY}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def check_key(folder: Path, manifest: dict[str, Any], key: dict[str, Any]) -> None:
    """Refuse to mix distances, and say what differs."""
    different = [part for part in KEY if manifest[part] != key[part]]
    if different:
        words = ", ".join(
            f"{KEY[part]} is {manifest[part]!r} there and {key[part]!r} here" for part in different
        )
        raise StoreError(f"{folder} holds other distances: {words}; choose another folder")


def write_manifest(folder: Path, key: dict[str, Any], tile: int, half: bool) -> None:
    """Make a folder a store; done last."""
    content = {"format": FORMAT, **key, "tile": tile, "half": half, "dtype": "float32"}
    with whole_file(folder / MANIFEST) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a store, or an error that says why the folder is none."""
    path = folder / MANIFEST
    if not path.is_file():
        raise StoreError(f"{folder} is no store of distances: {MANIFEST} is missing")
    if path.stat().st_size > _LONGEST:
        raise StoreError(f"{path} is longer than any manifest of softclt; remove the folder")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} is damaged ({error}); remove the folder") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise StoreError(f"{path} is not of format {FORMAT}, which this version of softclt reads")
    lacking = {*KEY, "tile", "half"} - manifest.keys()
    if lacking:
        raise StoreError(f"{path} lacks {', '.join(sorted(lacking))}; remove the folder")
    try:
        check_entries(manifest, _KINDS)
    except ValueError as error:
        raise StoreError(f"{path} is damaged ({error}); remove the folder") from None
    n_tiles = math.ceil(manifest["n_series"] / manifest["tile"]) ** 2
    if problem := too_large(_TILE_BYTES * n_tiles):
        raise StoreError(f"{path} speaks of {n_tiles} tiles; a list of them {problem}")
    return manifest


def write_series(folder: Path, x: Ragged) -> None:
    """Keep the series beside their distances."""
    with whole_file(folder / SERIES) as temporary:
        np.savez(temporary, values=x.values, starts=x.starts)


def read_series(folder: Path, expected: str) -> Ragged:
    """The series of a store, if their fingerprint is the one that is expected."""
    path = folder / SERIES
    try:
        arrays = Arrays(path)
        x = Ragged(arrays["values"], arrays["starts"])
        sound = fingerprint(x.values, x.starts) == expected
    except (ValueError, KeyError, TypeError, IndexError):
        sound = False
    if not sound:
        raise StoreError(
            f"{path} is missing or damaged; the call or command that began the store writes it "
            "again, if it is given the same data"
        )
    return x
