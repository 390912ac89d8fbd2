"""What the paper prints for the tables that a suite runs again, from ``paper.toml``."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from softclt.reports.metric import Metric


@dataclass(frozen=True)
class Printed:
    """A mean that the paper prints.

    Attributes:
        table: Where it stands.
        row: What the paper calls it.
        value: A share of one where the metric is one.
        metric: What it is the mean of.
        sets: How many data sets it is the mean of; 0 where the paper does not say.
        tau: How the taus were chosen.
        ours: Our rows that stand beside it, without their probe.
        group: Kind of group and group, where the mean is that of a part of the data sets.
    """

    table: str
    row: str
    value: float
    sets: int
    tau: str
    ours: tuple[str, ...]
    metric: str
    group: tuple[str, str] | None = None


@cache
def _tables() -> dict[str, tuple[Printed, ...]]:
    text = files("softclt.reports").joinpath("paper.toml").read_text(encoding="utf-8")
    content = tomllib.loads(text)
    found: dict[str, list[Printed]] = {}
    for table in content["table"]:
        group = tuple(table["group"]) if "group" in table else None
        metric = table.get("metric", "accuracy")
        unit = 100 if Metric(metric).percent else 1
        for value in table["values"]:
            entry = Printed(
                table=table["name"],
                row=value["row"],
                value=value["value"] / unit,
                sets=table["sets"],
                tau=content["tau"][value["tau"]],
                ours=tuple(value["ours"]),
                metric=metric,
                group=group,
            )
            for suite in table["suites"]:
                found.setdefault(suite, []).append(entry)
    return {suite: tuple(entries) for suite, entries in found.items()}


def printed(suite: str, metric: str = "accuracy") -> tuple[Printed, ...]:
    """What the paper prints of a metric for a suite.

    Example:
        >>> [(entry.row, round(entry.value, 3)) for entry in printed("uea")]
        [('TS2Vec', 0.712), ('TS2Vec + SoftCLT', 0.751)]
    """
    last = metric.rpartition(".")[2]
    return tuple(entry for entry in _tables().get(suite, ()) if entry.metric in (metric, last))
