"""The order in which an epoch goes through series that are not in memory."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from softclt.training.randomness import Stream, batch_rows, numpy_generator
from softclt.validation import Ints

KEPT = 2**20  # series whose order is drawn whole, as for arrays in memory
_ROUNDS = 6
_SHARDS, _SETS = 1, 2  # what is the same for all seeds is drawn apart from what is not


def rows_of_batch(
    seed: int,
    number: int,
    n: int,
    batch_size: int,
    shards: tuple[int, ...] | None = None,
    at_once: int = 0,
) -> Ints:
    """Rows of the batch with this number, counted from the first epoch on.

    Without shards, each epoch is a random permutation of all series. With shards, these come in
    random order, the same for all seeds; as many as fit are bundled, and a bundle is permuted.

    Args:
        seed: Of the model.
        number: Of the batch.
        n: Series.
        batch_size: Series of a batch; what does not fill a last batch of an epoch is left out.
        shards: Rows at which each begins, and n.
        at_once: Series of a bundle at most, if a single shard does not have more.
    """
    if shards is None and n <= KEPT:
        return batch_rows(seed, number, n, batch_size)
    epoch, position = divmod(number, n // batch_size)
    positions = np.arange(position * batch_size, (position + 1) * batch_size)
    if shards is None:
        return scatter(positions, n, seed, epoch)
    bundles, starts = _bundles(epoch, shards, at_once)
    of = np.searchsorted(starts, positions, side="right") - 1
    rows = [
        _bundle_order(seed, epoch, i, bundles[i])[positions[of == i] - starts[i]]
        for i in np.unique(of).tolist()
    ]
    return np.concatenate(rows)


def scatter(positions: Ints, n: int, seed: int, epoch: int) -> Ints:
    """Where a random permutation of n has some positions, without making the permutation.

    A Feistel network is a bijection of the numbers of an even number of bits, whatever its rounds
    compute; what lands at n or above is sent through again, until it lands below.

    Example:
        >>> sorted(scatter(np.arange(6), 6, seed=0, epoch=0).tolist())
        [0, 1, 2, 3, 4, 5]
    """
    bits = np.uint64((max(2, (n - 1).bit_length()) + 1) // 2)
    low = np.uint64((1 << int(bits)) - 1)
    keys = numpy_generator(Stream.ORDER, seed, epoch).integers(2**63, size=_ROUNDS, dtype=np.uint64)
    out = positions.astype(np.uint64)
    again = np.ones(len(out), dtype=bool)
    while again.any():
        left, right = out[again] >> bits, out[again] & low
        for key in keys:
            left, right = right, left ^ (_mixed(right + key) & low)
        out[again] = (left << bits) | right
        again = out >= n
    return out.astype(np.int64)


def _mixed(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers of 64 bits in which every bit depends on every bit."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


Bundle = tuple[tuple[int, int], ...]  # first row and end of each of its shards


@lru_cache(maxsize=4)
def _bundles(epoch: int, shards: tuple[int, ...], at_once: int) -> tuple[list[Bundle], Ints]:
    """The bundles of an epoch, and the position at which each begins."""
    order = numpy_generator(Stream.ORDER, _SHARDS, epoch, 1).permutation(len(shards) - 1)
    bundles: list[list[tuple[int, int]]] = []
    sizes: list[int] = []
    for i in order.tolist():
        size = shards[i + 1] - shards[i]
        if not bundles or sizes[-1] + size > at_once:
            bundles.append([])
            sizes.append(0)
        bundles[-1].append((shards[i], shards[i + 1]))
        sizes[-1] += size
    return [tuple(bundle) for bundle in bundles], np.cumsum([0, *sizes[:-1]])


@lru_cache(maxsize=64)  # those of a few seeds
def _bundle_order(seed: int, epoch: int, i: int, bundle: Bundle) -> Ints:
    rows = np.concatenate([np.arange(first, end) for first, end in bundle])
    return numpy_generator(Stream.ORDER, seed, epoch, i + 1).permutation(rows)


def set_of_step(step: int, counts: Sequence[int]) -> tuple[int, int]:
    """Which of several sets a step takes its batch from, and the number of that batch.

    The step alone decides, so that stacked models share shapes. An epoch has each batch of each
    set once, in random order: sets come in proportion to their number of batches.

    Args:
        step: Of training.
        counts: Batches of each set in an epoch.
    """
    epoch, i = divmod(step, sum(counts))
    sets, numbers = _schedule(epoch, tuple(counts))
    k = int(sets[i])
    return k, epoch * counts[k] + int(numbers[i])


@lru_cache(maxsize=4)
def _schedule(epoch: int, counts: tuple[int, ...]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    sets = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    sets = numpy_generator(Stream.ORDER, _SETS, epoch, 1).permutation(sets)
    numbers = np.empty_like(sets)
    for k, count in enumerate(counts):
        numbers[sets == k] = np.arange(count)
    return sets, numbers
