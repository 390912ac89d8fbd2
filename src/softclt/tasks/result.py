"""One run, one JSON line: what was run, how it scored and everything needed to run it again."""

import gzip
import io
import json
import logging
import math
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from softclt.files import append_lines
from softclt.persistence import json_safe, utc_now
from softclt.schema import COUNT, NUMBER, SIZE, TABLE, TEXT, Kind, check_kind, table_of

_LONGEST_LINE = 2**24  # bytes

# What lines hold that `to_json` wrote; metrics of early ones may be NaN, as Python's JSON has it.
_METRICS = Kind(
    "a number or null",
    lambda value: value is None or isinstance(value, float) or NUMBER.fits(value),
)
_KINDS = {
    **dict.fromkeys(("task", "dataset", "fingerprint", "method", "tau_choice", "probe"), TEXT),
    **dict.fromkeys(("device", "created", "suite", "configuration", "control", "error"), TEXT),
    **dict.fromkeys(("params", "options"), TABLE),
    **dict.fromkeys(("versions", "groups"), table_of(TEXT, "texts")),
    "seed": COUNT,
    "trained_together": SIZE,
    "seconds": table_of(NUMBER, "numbers"),
    "metrics": table_of(_METRICS, "numbers"),
}

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a task found out about one model on one data set with one seed.

    Attributes:
        fingerprint: Hash of the data; another file under the same name is another data set.
        method: Registered name of the method.
        params: Every parameter of the method, in a form that JSON can hold.
        tau_choice: How the taus were chosen: ``"default"`` (the library's), ``"hard"`` (none),
            ``"fixed"`` (given beforehand), ``"train"`` (by training series and their labels),
            ``"unlabelled"`` (by training series alone), ``"oracle"`` (by the test set: an upper
            bound, never a score to claim) or ``"none"`` (there is none).
        probe: What reads the representation, names joined by ``+``; empty where a task has none.
        options: Options of the task, defaults included.
        metrics: Score by name; with several probes the names are ``<probe>.<metric>``.
        seconds: Wall time by phase; where models were fitted together, ``fit`` is the share of
            this one: the time of all over their number, times its own members.
        trained_together: How many models that were.
        created: When the run ended, UTC.
        suite: Name of the suite that the run belongs to; empty for a run of its own.
        configuration: Name of the row in its suite.
        control: Name of the row that differs in softness alone; empty where there is none.
        groups: What kind of data set it is, by rule, e.g. ``{"length": "short"}``.
        error: Why the run failed; ``metrics`` are empty then.
    """

    task: str
    dataset: str
    fingerprint: str
    method: str
    params: dict[str, Any]
    tau_choice: str
    seed: int
    metrics: dict[str, float]
    probe: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    device: str = ""
    created: str = field(default_factory=utc_now)
    trained_together: int = 1
    suite: str = ""
    configuration: str = ""
    control: str = ""
    groups: dict[str, str] = field(default_factory=dict)
    error: str = ""

    def to_json(self) -> str:
        """One line of JSON; a number that is not finite is null."""
        return json.dumps(json_safe(asdict(self)), allow_nan=False)

    @classmethod
    def from_json(cls, line: str) -> "Result":
        """The result that `to_json` wrote; a metric that is null becomes NaN."""
        try:
            values = json.loads(line)
        except RecursionError:
            raise ValueError("not a result: lists within lists without end") from None
        names = {f.name for f in fields(cls)}
        if not isinstance(values, dict) or not {"task", "metrics"} <= values.keys() <= names:
            raise ValueError(
                "not a result: expected a JSON object with task, dataset, metrics, ..."
            )
        for name, kind in _KINDS.items():
            if name in values:
                check_kind(values[name], kind, f"not a result: {name}")
        metrics = values["metrics"]
        values["metrics"] = {k: math.nan if v is None else float(v) for k, v in metrics.items()}
        try:
            return cls(**values)
        except TypeError as error:  # a field without default is missing
            raise ValueError(f"not a whole result: {error}") from None

    def identity(self) -> str:
        """Equal for two results of the same row, task, data, model, seed and version of softclt."""
        run = ("task", "fingerprint", "method", "params", "tau_choice", "seed", "options")
        names = ("suite", "configuration", *run)
        parts = {name: json_safe(getattr(self, name)) for name in names}
        return json.dumps(parts | {"version": self.versions.get("softclt")}, sort_keys=True)

    def append_to(self, path: str | os.PathLike[str]) -> None:
        """Add this result to a file of results, in one write.

        What a killed process left of its last line is cut off first. Processes may share the file.
        """
        append_lines(path, self.to_json() + "\n")

    def summary(self) -> str:
        """A line for a person, e.g. ``classification GunPoint ts2vec seed 0: accuracy 0.987``."""
        scores = ", ".join(f"{name} {value:.4f}" for name, value in self.metrics.items())
        scores = f"failed: {self.error}" if self.error else scores
        probe = f" ({self.probe})" if self.probe else ""
        return (
            f"{self.task} {self.dataset} {self.method}{probe}, tau {self.tau_choice}, "
            f"seed {self.seed}: {scores} in {sum(self.seconds.values()):.1f} s"
        )


def open_lines(path: str | os.PathLike[str]) -> io.BufferedIOBase:
    """A file of results, also a compressed one, to be read."""
    return gzip.open(path) if os.fspath(path).endswith(".gz") else Path(path).open("rb")


def read_results(path: str | os.PathLike[str]) -> list[Result]:
    """All results of a file, ``.jsonl`` or ``.jsonl.gz``.

    A torn last line, as a killed process leaves it, is left out.
    """
    results = []
    for number, (line, is_last) in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            results.append(Result.from_json(line.decode()))
        except ValueError as error:
            if is_last and not line.endswith(b"\n"):
                log.warning("%s: left out the torn last line %d", path, number)
                continue
            raise ValueError(
                f"{path}, line {number}: {error}; remove or repair this line"
            ) from None
    return results


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[bytes, bool]]:
    """Lines of a file, each with whether it is the last; none is longer than a result may be."""
    before: bytes | None = None
    with open_lines(path) as file:
        while line := file.readline(_LONGEST_LINE):
            if len(line) == _LONGEST_LINE:
                raise ValueError(f"{path} has a line of more than {len(line)} bytes: no results")
            if before is not None:
                yield before, False
            before = line
    if before is not None:
        yield before, True
