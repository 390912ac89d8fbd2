"""Which series keep their labels, by a rule, and files of such rows for others to use."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from softclt.data.errors import DataError
from softclt.data.text import existing_file
from softclt.files import whole_file
from softclt.validation import Ints, check_choice, check_range

RULES = ("stratified", "plain")


def draw_labels(y: Any, share: float, rule: str = "stratified", seed: int = 0) -> Ints:
    """Rows, in ascending order, of the series that keep their labels.

    Args:
        y: A label a series, of any kind.
        share: In per cent of all series, as papers write it: 1 is one of a hundred.
        rule: ``"stratified"``: so many labels as the share gives, rounded, but at least one a
            class; classes get them in proportion to their size, by largest remainder (the first of
            equals), and one that would get none takes one of the class with the most. Which rows of
            a class is drawn by the seed, in an order that all shares have in common. ``"plain"``:
            ``train_test_split(test_size=share / 100, random_state=seed)``, which older papers ran
            once, with seed 0: it rounds up, and a rare class may get none.
        seed: Of the draw.

    Example:
        >>> draw_labels(["a"] * 90 + ["b"] * 10, share=5, seed=1)
        array([14, 34, 61, 64, 99])
    """
    labels = np.asarray(y)
    if labels.ndim != 1 or not len(labels):
        raise ValueError(f"y has shape {labels.shape}; expected one label a series, (N,)")
    check_range(share, "share", 0, 100, open_low=True)
    check_choice(rule, RULES, "rule")
    if share == 100:
        return np.arange(len(labels))
    if rule == "plain":
        from sklearn.model_selection import train_test_split

        _, rows = train_test_split(np.arange(len(labels)), test_size=share / 100, random_state=seed)
        return np.sort(rows)
    classes, sizes = np.unique(labels, return_counts=True)
    wanted = max(len(classes), round(len(labels) * share / 100))
    rng = np.random.default_rng(seed)
    own = [
        rng.permutation(np.flatnonzero(labels == one))[:n]
        for one, n in zip(classes, _apportion(sizes, wanted), strict=True)
    ]
    return np.sort(np.concatenate(own))


def save_rows(
    path: str | os.PathLike[str],
    rows: Mapping[float, Sequence[int] | Ints],
    *,
    n_series: int,
    **about: Any,
) -> None:
    """Write which rows keep their labels as JSON.

    Args:
        path: The file, written whole or not at all.
        rows: By share in per cent; the first series is row 0.
        n_series: Of the training part that the rows are of.
        about: What else a reader may want to know: data set, fingerprint, rule, seed.
    """
    content = {
        **about,
        "n_series": n_series,
        "rows": {f"{share:g}": [int(row) for row in own] for share, own in rows.items()},
    }
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(content) + "\n", encoding="utf-8")


def load_rows(path: str | os.PathLike[str], n_series: int | None = None) -> dict[float, Ints]:
    """The rows of a file that :func:`save_rows` wrote, by share in per cent.

    Args:
        path: The file.
        n_series: Of the training part at hand; another number than the file's is refused.
    """
    path = existing_file(Path(path))
    try:
        content = json.loads(path.read_text("utf-8"))
        own = int(content["n_series"])
        rows = {float(k): np.array(v, dtype=np.int64) for k, v in content["rows"].items()}
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(
            f"is no file of rows ({type(error).__name__}: {error}); expected what save_rows writes",
            path,
        ) from None
    if n_series is not None and own != n_series:
        raise DataError(f"is of {own} training series, but here are {n_series}", path)
    for share, found in rows.items():
        if found.ndim != 1 or not len(found) or found.min() < 0 or found.max() >= own:
            raise DataError(f"the rows at {share:g} % are not all in 0..{own - 1}", path)
        if len(np.unique(found)) < len(found):
            raise DataError(f"a row at {share:g} % is there twice", path)
    return rows


def _apportion(sizes: Ints, n: int) -> list[int]:
    """So many of each class: proportional by largest remainder, then at least one."""
    quotas = n * sizes / sizes.sum()
    given = np.floor(quotas).astype(int)
    order = np.argsort(-(quotas - given), kind="stable")
    given[order[: n - given.sum()]] += 1
    for empty in np.flatnonzero(given == 0):
        given[np.argmax(given)] -= 1
        given[empty] = 1
    return [int(one) for one in given]
