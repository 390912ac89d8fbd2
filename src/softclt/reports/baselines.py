"""Published scores from CSV files, in the two forms that people have them in."""

import csv
import os
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from softclt.reports.metric import Metric
from softclt.reports.rows import PUBLISHED, Row

NOT_STATED = "not stated"

_GAPS = {"", "nan", "na", "n/a", "none", "null", "-", "–", "?"}
_DATASET = ("dataset", "data set", "data_set", "problem", "name")
_METHOD = ("method", "classifier", "estimator", "model", "algorithm")
_VALUE = ("value", "score", "mean")
_SEED = ("seed", "fold", "resample", "run")


@dataclass
class _Column:
    """One method of one file: data set as written -> seed -> value."""

    method: str
    source: str
    selection: str = NOT_STATED
    values: dict[str, dict[int, float]] = field(default_factory=dict)

    def add(self, dataset: str, seed: int, value: float, where: str) -> None:
        seeds = self.values.setdefault(dataset, {})
        if seed in seeds:
            raise ValueError(f"{where}: {self.method} has a second score of {dataset}")
        seeds[seed] = value

    def all(self) -> list[float]:
        return [value for seeds in self.values.values() for value in seeds.values()]


def plain_name(dataset: str) -> str:
    """A data set's name without archive and case, as it is matched: ``ucr/GunPoint`` is gunpoint.

    Example:
        >>> plain_name("ucr/GunPoint") == plain_name("Gunpoint")
        True
    """
    return dataset.strip().replace("\\", "/").rpartition("/")[2].lower()


def read_baselines(
    paths: Iterable[str | os.PathLike[str]],
    datasets: Sequence[str],
    metric: Metric,
    methods: Sequence[str] = (),
) -> list[Row]:
    """Published rows with the scores of our data sets; methods without any are left out.

    A file is wide (first column the data set, a column for each method) or long (columns
    ``dataset``, ``method`` and ``value`` or the metric's name; ``source``, ``selection`` and
    ``seed`` where there are some). Shares or per cent: see `_as_shares`.

    Args:
        paths: CSV files.
        datasets: Our names; theirs are matched without archive and case.
        metric: What the scores are.
        methods: Only these, where given.
    """
    ours: dict[str, str] = {}
    for name in datasets:
        if ours.setdefault(plain_name(name), name) != name:
            raise ValueError(
                f"{ours[plain_name(name)]} and {name} have the same name without their archive; "
                "give baselines for one suite at a time"
            )
    columns = [column for path in paths for column in _read(Path(path), metric)]
    known = list(dict.fromkeys(column.method for column in columns))
    if unknown := [method for method in methods if method not in known]:
        raise ValueError(
            f"no baseline is called {', '.join(unknown)}; there are {', '.join(known)}"
        )
    rows = []
    for column in columns:
        scores = {
            ours[plain_name(name)]: seeds
            for name, seeds in column.values.items()
            if plain_name(name) in ours
        }
        if scores and (not methods or column.method in methods):
            twice = sum(other.method == column.method for other in columns) > 1
            rows.append(
                Row(
                    f"{column.method} ({column.source})" if twice else column.method,
                    PUBLISHED,
                    tau_choice=column.selection,
                    source=column.source,
                    scores=scores,
                )
            )
    return rows


def _read(path: Path, metric: Metric) -> list[_Column]:
    text = path.read_text(encoding="utf-8-sig")
    lines = text.splitlines()
    if not lines:
        raise ValueError(f"{path} is empty; expected a CSV file with a header")
    delimiter = max(",;\t", key=lines[0].count)
    header, *body = csv.reader(lines, delimiter=delimiter)
    if len(header) < 2 or not body:
        raise ValueError(
            f"{path}: expected a header and lines of a data set and its scores, with commas, "
            "semicolons or tabs between them"
        )
    number = _number_reader(delimiter)
    names = [name.strip().lower() for name in header]
    long = _find(names, _DATASET) is not None and _find(names, _METHOD) is not None
    columns = (_long if long else _wide)(path, header, body, number, metric)
    if not any(column.values for column in columns):
        raise ValueError(f"{path} holds no score")
    if metric.percent:
        _as_shares(path, columns)
    return columns


def _number_reader(delimiter: str) -> Callable[[str], float | None]:
    def read(text: str) -> float | None:
        text = text.strip()
        if text.lower() in _GAPS:
            return None
        return float(text if delimiter == "," else text.replace(",", "."))

    return read


def _wide(
    path: Path,
    header: list[str],
    body: list[list[str]],
    number: Callable[[str], float | None],
    metric: Metric,
) -> list[_Column]:
    columns = [_Column(name.strip(), path.name) for name in header[1:]]
    for line, cells in enumerate(body, start=2):
        if not any(cell.strip() for cell in cells):
            continue
        for column, cell in zip(columns, cells[1:], strict=False):
            where = f"{path}, line {line}"
            try:
                value = number(cell)
            except ValueError:
                raise ValueError(
                    f"{where}, column {column.method}: {cell!r} is no number; expected a data "
                    "set and the scores of the methods, or the columns dataset, method and value"
                ) from None
            if value is not None:
                column.add(cells[0].strip(), 0, value, where)
    return columns


def _long(
    path: Path,
    header: list[str],
    body: list[list[str]],
    number: Callable[[str], float | None],
    metric: Metric,
) -> list[_Column]:
    names = [name.strip().lower() for name in header]
    value_at = _find(names, (metric.name.lower(), *_VALUE))
    if value_at is None:
        raise ValueError(
            f"{path} has no column {metric.name!r} or 'value'; it has {', '.join(header)}"
        )
    columns: dict[tuple[str, str], _Column] = {}
    for line, cells in enumerate(body, start=2):
        entry = dict(zip(names, (cell.strip() for cell in cells), strict=False))
        dataset = entry.get(names[_find(names, _DATASET) or 0], "")
        if not dataset or entry.get("metric", metric.name) != metric.name:
            continue  # the mean of a report's own table, or another metric
        method = entry[names[_find(names, _METHOD) or 0]]
        where = f"{path}, line {line}"
        try:
            value = number(cells[value_at])
            seed_at = _find(names, _SEED)
            seed = 0 if seed_at is None else int(cells[seed_at])
        except (ValueError, IndexError):
            raise ValueError(f"{where}: expected numbers for score and seed") from None
        source = entry.get("source") or path.name
        column = columns.setdefault((method, source), _Column(method, source))
        column.selection = entry.get("selection") or entry.get("tau_choice") or NOT_STATED
        if value is not None:
            column.add(dataset, seed, value, where)
    return list(columns.values())


def _find(names: Sequence[str], wanted: Sequence[str]) -> int | None:
    return next((names.index(name) for name in wanted if name in names), None)


def _as_shares(path: Path, columns: list[_Column]) -> None:
    """Turn per cent into shares of one.

    A file is in shares if no score is above 1, and in per cent if more than half of each method's
    scores are. Anything else could be a mixture and is refused, as is a score below 0 or above 100.
    """
    columns = [column for column in columns if column.values]
    scores = [value for column in columns for value in column.all()]
    for worst in (min(scores), max(scores)):
        if not 0 <= worst <= 100:
            raise ValueError(f"{path} has the score {worst:g}; expected 0 to 1 or 0 to 100")
    if max(scores) <= 1:
        return
    for column in columns:
        if statistics.median(column.all()) <= 1:
            raise ValueError(
                f"{path}: most scores of {column.method} are not above 1, but there is a "
                f"{max(scores):g}; expected all scores in per cent or all between 0 and 1"
            )
    for column in columns:
        for seeds in column.values.values():
            seeds.update({seed: value / 100 for seed, value in seeds.items()})
