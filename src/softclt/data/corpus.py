"""Many sets of series as one, to train an encoder that is to know them all."""

import json
import math
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from softclt.data.arrays import Arrays
from softclt.data.catalog import available, load
from softclt.data.dataset import fingerprint
from softclt.data.errors import DataError
from softclt.data.generator import synthetic_series
from softclt.data.preparation import resampled
from softclt.files import whole_file
from softclt.validation import Flags, Floats, Floats32, Ints, check_range, series_lengths

_KEYS = {
    "": {"length", "most", "seed", "not_in_tests_of", "sets", "windows", "synthetic", "training"},
    "sets": {"data", "except"},
    "windows": {"data", "series", "steps", "count", "half_of_series", "first"},
    "synthetic": {"count", "share", "seed", "siblings"},
}
_SHIPPED = Path(__file__).parent / "corpora"
_ENOUGH = 300  # series of a set from which on more do not make it weigh more
_COMPARED = 128  # steps at which series are compared with those of test parts
_EQUAL = 1e-5  # mean square between standardised series up to which they are the same


@dataclass(frozen=True, eq=False)
class Corpus:
    """Sets of single-channel series of one length, which methods take as X of ``fit``.

    Batches mix the sets, each by its weight. Series are compared within a set only.

    Attributes:
        values: All series ``(N, 1, T)``, those of a set after those of another.
        names: Of the sets.
        sizes: Series of each set.
        weights: How often each set is drawn from, in proportion.
        siblings: How many series that follow one another in a set were made in the same way, and
            are alike, and no others; 0: how alike they are is told by their distances.
        manifest: Where everything came from: for each set its name, number and fingerprint.
    """

    values: Floats32
    names: tuple[str, ...]
    sizes: tuple[int, ...]
    weights: tuple[float, ...]
    siblings: tuple[int, ...]
    manifest: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lengths = {len(self.names), len(self.sizes), len(self.weights), len(self.siblings)}
        if len(lengths) > 1 or sum(self.sizes) != len(self.values):
            raise DataError(
                f"the corpus has {len(self.values)} series and sets of {self.sizes} series; "
                "expected as many in all, and a name, a weight and siblings for each set"
            )

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        n, _, t = self.values.shape
        return f"Corpus({len(self.names)} sets, {n} series of {t} steps)"


@dataclass(frozen=True)
class _Part:
    """A set: as the encoder sees it, ``(N, 1, T)``, and as it is compared with test series."""

    name: str
    x: Floats32
    compared: Floats32
    fingerprint: str


def read_corpus(
    path: str | os.PathLike[str],
    device: str = "cpu",
    synthetic: Mapping[str, Any] | None = None,
) -> Corpus:
    """Gather the corpus that a TOML file describes; ``base`` and ``synthetic`` are in the package.

    Or read what `write_corpus` kept of one. Synthetic series are made anew, on ``device``; those of
    ``synthetic`` instead of what the file asks for.

    A file has:

    * ``length``: steps that every series is brought to, standardised.
    * ``most``: series taken from a set at most, drawn by ``seed``.
    * ``[[sets]]``: ``data``, names or patterns of data sets, of which the training parts are taken,
      channel by channel, and ``except``, names or patterns to leave out.
    * ``[[windows]]``: ``data``, sets of long series; ``count`` windows of each, of a random length
      from the two of ``steps``, from the ``first`` share of each series, and, with
      ``half_of_series``, from a half of the series that this seed draws.
    * ``[synthetic]``: ``count`` series of `synthetic_series` by ``seed``, with ``siblings``, and
      their ``share`` of every batch.
    * ``[training]``: parameters of the method, which ``softclt pretrain`` takes from here.
    * ``not_in_tests_of``: names or patterns of data sets; a series that equals one of their test
      parts is dropped.
    """
    path = find_corpus(path)
    real = _kept(path) if path.suffix == ".npz" else _gathered(path)
    if synthetic is not None:
        real.manifest["asked"]["synthetic"] = dict(synthetic)
    with _told_of(path):
        return _with_synthetic(real, device)


def write_corpus(path: str | os.PathLike[str], out: str | os.PathLike[str]) -> int:
    """Gather the real series of a corpus into a file, to train where its data sets are not.

    Values are kept in half precision. Gives the number of series.

    Args:
        path: See `read_corpus`.
        out: The file, which ends with ``.npz``.
    """
    if Path(out).suffix != ".npz":
        raise ValueError(f"a corpus is kept in a file that ends with .npz; got {os.fspath(out)}")
    corpus = _gathered(find_corpus(path))
    about = {"names": corpus.names, "sizes": corpus.sizes, "weights": corpus.weights}
    text = json.dumps(about | {"manifest": corpus.manifest})
    with whole_file(out) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, values=corpus.values.astype(np.float16), about=np.array(text))
    return len(corpus)


def _kept(path: Path) -> Corpus:
    """The real series of a corpus, from a file of `write_corpus`."""
    try:
        file = Arrays(path)
        values, about = file["values"].astype(np.float32), json.loads(str(file["about"]))
        names, sizes, weights = (tuple(about[key]) for key in ("names", "sizes", "weights"))
        return Corpus(values, names, sizes, weights, (0,) * len(names), about["manifest"])
    except DataError:
        raise
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(f"holds no corpus ({error}); write_corpus makes one", path) from None


def _gathered(path: Path) -> Corpus:
    """The real series that a TOML file asks for."""
    try:
        with path.open("rb") as file:
            asked = tomllib.load(file)
    except OSError as error:
        raise DataError(f"cannot be read ({error.strerror})", path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"is no TOML file ({error})", path) from None
    with _told_of(path):
        _check(asked)
        return _real(asked)


@contextmanager
def _told_of(path: Path) -> Iterator[None]:
    """Name the file in errors about what it asks for."""
    try:
        yield
    except (DataError, ValueError, TypeError) as error:
        raise DataError(f"asks for a corpus that cannot be made: {error}", path) from None


def find_corpus(name: str | os.PathLike[str]) -> Path:
    """The file that comes with the package under a name, or the one at a path."""
    shipped = _SHIPPED / f"{os.fspath(name)}.toml"
    return shipped if shipped.parent == _SHIPPED and shipped.is_file() else Path(name)


def gather(asked: Mapping[str, Any], device: str = "cpu") -> Corpus:
    """The corpus of a description: see `read_corpus`."""
    return _with_synthetic(_real(asked), device)


def _real(asked: Mapping[str, Any]) -> Corpus:
    """All of a corpus but its synthetic series."""
    length, most = asked.get("length", 512), asked.get("most", 400)
    rng = np.random.default_rng(asked.get("seed", 0))
    parts: list[_Part] = []
    for entry in asked.get("sets", []):
        for name in _named(entry["data"], entry.get("except", [])):
            parts.append(_training_part(name, most, length, rng))
    for entry in asked.get("windows", []):
        for name in _named(entry["data"], []):
            parts.append(_windows(name, entry, length, rng))
    dropped = 0
    if (patterns := asked.get("not_in_tests_of")) and parts:
        seen = _tests(_named(patterns, []))
        n_before = sum(len(part.x) for part in parts)
        parts = [replace(part, x=part.x[~_is_among(part.compared, seen)]) for part in parts]
        dropped = n_before - sum(len(part.x) for part in parts)
        parts = [part for part in parts if len(part.x)]
    manifest = {
        "asked": dict(asked),
        "sets": [
            {"name": part.name, "series": len(part.x), "fingerprint": part.fingerprint}
            for part in parts
        ],
        "dropped_as_equal_to_tests": dropped,
    }
    return Corpus(
        np.concatenate([np.empty((0, 1, length), np.float32), *(part.x for part in parts)]),
        tuple(part.name for part in parts),
        tuple(len(part.x) for part in parts),
        tuple(math.sqrt(min(len(part.x), _ENOUGH)) for part in parts),
        (0,) * len(parts),
        manifest,
    )


def _with_synthetic(real: Corpus, device: str) -> Corpus:
    """A corpus with the synthetic series that it asks for."""
    made = real.manifest["asked"].get("synthetic")
    if made is None:
        if not len(real):
            raise DataError("there is no series in it; name data sets, or ask for synthetic series")
        return real
    siblings, share = made.get("siblings", 1), made.get("share", 0.25)
    length = real.values.shape[-1]
    x = synthetic_series(
        made["count"],
        length,
        random_state=made.get("seed", 0),
        siblings=siblings,
        device=device,
    )
    weight = share / (1 - share) * sum(real.weights) if len(real) else 1.0
    told = {"device": device.split(":")[0], "fingerprint": fingerprint(x)}
    return Corpus(
        np.concatenate([real.values, x]),
        (*real.names, "synthetic"),
        (*real.sizes, len(x)),
        (*real.weights, weight),
        (*real.siblings, siblings),
        real.manifest | {"synthetic": told},
    )


def _check(asked: Mapping[str, Any]) -> None:
    """Refuse what nobody would read."""
    for place, known in _KEYS.items():
        found = asked if place == "" else asked.get(place, [])
        for table in [found] if isinstance(found, Mapping) else found:
            if strange := set(table) - known:
                where = f"[{place}]" if place else "the file"
                raise DataError(
                    f"{where} has the unknown key {sorted(strange)[0]!r}; known: "
                    f"{', '.join(sorted(known))}"
                )
    check_range(asked.get("length", 512), "length", 16)
    check_range(asked.get("most", 400), "most", 1)
    if "synthetic" in asked:
        share = asked["synthetic"].get("share", 0.25)
        check_range(share, "share", 0, 1, open_low=True)
        if share == 1:
            raise DataError("synthetic share is 1; leave the other sets out instead")


def _named(patterns: str | Sequence[str], but: Sequence[str]) -> list[str]:
    """Names of data sets that are here, in their order; each pattern has to find one."""
    everything, names = available(), []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        found = [name for name in everything if fnmatch(name, pattern)]
        if not found:
            raise DataError(f"no data set is called {pattern!r}; `softclt list data` shows them")
        names += [name for name in found if not any(fnmatch(name, one) for one in but)]
    return list(dict.fromkeys(names))


def _training_part(name: str, most: int, length: int, rng: np.random.Generator) -> _Part:
    """Some of the channels of the training series, as the encoder sees them."""
    X = load(name, split="train").X_train  # (N, D, T)
    n, d, t = X.shape
    chosen = np.sort(rng.choice(n * d, size=min(most, n * d), replace=False))
    some = X.reshape(n * d, 1, t)[chosen]
    some = some[(~np.isnan(some)).sum(axis=(1, 2)) > 1]
    compared = resampled(some, _COMPARED)[:, 0]
    return _Part(name, resampled(some, length), compared, fingerprint(X))


def _windows(name: str, asked: Mapping[str, Any], length: int, rng: np.random.Generator) -> _Part:
    """Windows of random places and lengths."""
    data = load(name)
    X = data.X_train
    rows = np.arange(len(X))
    if (seed := asked.get("half_of_series")) is not None:
        rows = half_of(len(X), seed)
    channels = X[rows].reshape(-1, 1, X.shape[-1])  # (N * D, 1, T)
    ends = (series_lengths(channels) * asked.get("first", 1.0)).astype(np.int64)
    shortest, longest = asked.get("steps", (128, 1024))
    fitting = np.flatnonzero(ends >= shortest)
    if not len(fitting):
        raise DataError(f"no series of {name} has {shortest} steps in its part")
    windows = []
    for i in rng.choice(fitting, size=asked.get("count", 400)):
        steps = int(rng.integers(shortest, min(longest, ends[i]) + 1))
        start = int(rng.integers(0, ends[i] - steps + 1))
        window = channels[i : i + 1, :, start : start + steps]
        if np.nanstd(window) > 0:
            windows.append(resampled(window, length))
    x = np.concatenate(windows)
    return _Part(name, x, resampled(x, _COMPARED)[:, 0], data.fingerprint)


def half_of(n: int, seed: int) -> Ints:
    """A half of n numbers that a seed draws, in order."""
    return np.sort(np.random.default_rng(seed).permutation(n)[: n // 2])


def _tests(names: Sequence[str]) -> Floats32:
    """All channels of all test series, ``(N, steps)``, as they are compared."""
    parts = list(_test_parts(names))
    return np.concatenate(parts) if parts else np.empty((0, _COMPARED), np.float32)


def _test_parts(names: Sequence[str]) -> Iterator[Floats32]:
    for name in names:
        X: Floats | None = load(name).X_test
        if X is not None:
            yield resampled(X.reshape(-1, 1, X.shape[-1]), _COMPARED)[:, 0]


def _is_among(own: Floats32, others: Floats32) -> Flags:
    """Whether each series ``(N, steps)`` equals one of ``(K, steps)``, but for rounding."""
    squares = (others.astype(np.float64) ** 2).sum(axis=1)
    nearest = np.full(len(own), np.inf)
    for start in range(0, len(others), 16384):
        part = slice(start, start + 16384)
        apart = squares[part] - 2 * (own @ others[part].T)
        nearest = np.minimum(nearest, apart.min(axis=1, initial=np.inf))
    nearest += (own.astype(np.float64) ** 2).sum(axis=1)
    found: Flags = nearest < max(_EQUAL * _COMPARED, 1e-3)
    return found
