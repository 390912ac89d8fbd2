"""Class labels of any kind become the integers 0..L-1."""

import logging
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from softclt.data.errors import DataError
from softclt.validation import Ints

_log = logging.getLogger(__name__)

UNLABELLED = -1  # in place of a class number, where it is not known


def encode_labels(train: Any, test: Any = ()) -> tuple[Ints, Ints, list[str]]:
    """Integer labels of both splits and the class names that they index.

    The classes are those of the training set in sorted order: by value when every label is a
    number (then ``1`` and ``1.0`` are one class), else by name. Classes that only the test set has
    come behind them, sorted as well, so that they never move the others.

    Example:
        >>> encode_labels(["10", "9", "9"], ["9", "11"])
        (array([1, 0, 0]), array([0, 2]), ['9', '10', '11'])
    """
    names, others = _names(train), _names(test)
    key: Callable[[str], Any] = float if all(map(_is_number, names + others)) else str
    first_name: dict[Any, str] = {}
    for name in names + others:
        first_name.setdefault(key(name), name)
    known = {key(name) for name in names}
    unseen = sorted(first_name.keys() - known)
    if names and unseen:
        _log.warning(
            "test labels that the training set does not have: %s",
            ", ".join(first_name[k] for k in unseen),
        )
    order = sorted(known) + unseen
    index = {k: i for i, k in enumerate(order)}
    y_train = np.array([index[key(name)] for name in names], dtype=np.int64)
    y_test = np.array([index[key(name)] for name in others], dtype=np.int64)
    return y_train, y_test, [first_name[k] for k in order]


def _names(labels: Any) -> list[str]:
    names = [str(label) for label in np.asarray(labels).ravel().tolist()]
    for i, name in enumerate(names):
        if name.lower() in ("", "nan", "nat"):
            raise DataError(f"label {i} is missing; every series of a labelled set needs one")
    return names


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
