"""Labels of which most are unknown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from softclt.data.labels import UNLABELLED


@dataclass(frozen=True)
class PartialLabels:
    """Class numbers of some series.

    Attributes:
        classes: As the caller names them, sorted ``(L,)``; each has a label.
        codes: Number of the class of each series ``(N,)``, -1 where it is unknown.
    """

    classes: NDArray[Any]
    codes: NDArray[np.int64]

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which series have a label, ``(N,)``."""
        return np.asarray(self.codes >= 0)

    @property
    def rows(self) -> NDArray[np.int64]:
        """Of the series that have a label."""
        return np.flatnonzero(self.known)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Labels of each class, ``(L,)``."""
        return np.bincount(self.codes[self.known], minlength=len(self.classes))


def read_labels(y: Any, n_series: int, unlabelled: Any = UNLABELLED) -> PartialLabels:
    """Labels and their classes; nothing but a marker tells that a series has none.

    Args:
        y: A label or a marker for each series, ``(N,)``.
        n_series: Number of series N.
        unlabelled: The marker. Missing values (None, NaN) and empty texts are markers anyway. Where
            labels are texts, its text counts, so that the -1 of a table is one.

    Example:
        >>> read_labels(["run", None, "walk", "-1", "run"], 5).codes
        array([ 0, -1,  1, -1,  0])
        >>> read_labels([-1, 1, 0, 1], 4, unlabelled=0).classes
        array([-1,  1])
    """
    if y is None:
        raise ValueError(
            "this estimator requires y to be passed, but the target y is None: "
            "give a label for some series, and the marker `unlabelled` for the others"
        )
    values = _as_objects(y)
    if len(values) != n_series:
        raise ValueError(
            f"X has {n_series} series, but y has {len(values)} entries; "
            f"expected one for each, {unlabelled!r} where there is no label"
        )
    known = ~_is_marked(values, unlabelled)
    if not known.any():
        raise ValueError(
            f"y has no label: all of its {n_series} entries are {unlabelled!r} or missing; "
            "at least two classes need one label each"
        )
    given = _one_kind(values[known])
    check_classification_targets(given)
    classes, numbers = np.unique(given, return_inverse=True)
    if len(classes) == 1:
        raise ValueError(
            f"all {known.sum()} labels are {classes.tolist()[0]!r}: one class only, with nothing "
            "to tell it from; label a series of another class"
        )
    codes = np.full(n_series, -1, np.int64)
    codes[known] = numbers
    return PartialLabels(classes, codes)


def _as_objects(y: Any) -> NDArray[np.object_]:
    """Each label as it was given; NumPy alone would turn None beside texts into a text."""
    if hasattr(y, "detach"):
        y = y.detach().cpu().numpy()
    if isinstance(y, (list, tuple)) and not any(isinstance(v, (list, tuple)) for v in y):
        objects = np.empty(len(y), dtype=object)
        objects[:] = y
        return objects
    try:
        values = np.asarray(y)
    except ValueError:
        raise ValueError("y holds lists beside labels; expected one label a series") from None
    flat: NDArray[np.object_] = column_or_1d(values, warn=True).astype(object)
    return flat


def _is_marked(values: NDArray[np.object_], unlabelled: Any) -> NDArray[np.bool_]:
    marked = np.asarray(pd.isna(values), dtype=bool)
    own_marker = not pd.isna(unlabelled)
    for i in np.flatnonzero(~marked):
        empty = isinstance(values[i], str) and not values[i].strip()
        marked[i] = empty or (own_marker and _same(values[i], unlabelled))
    return marked


def _same(value: Any, marker: Any) -> bool:
    if isinstance(value, str) or isinstance(marker, str):
        return str(value).strip() == str(marker).strip()
    return bool(value == marker)


def _one_kind(values: Sequence[Any] | NDArray[np.object_]) -> NDArray[Any]:
    """Labels as an array of numbers or of texts."""
    if len({isinstance(value, str) for value in values}) > 1:
        raise ValueError(
            "y has texts and numbers as labels; make all of them one kind, e.g. with y.astype(str)"
        )
    return np.array(list(values))
