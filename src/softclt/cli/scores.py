"""``evaluate`` and ``classify``: how good a method is, and what new series are."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softclt.cli import options
from softclt.cli.output import (
    TABLE_SUFFIXES,
    check_suffix,
    note,
    print_json,
    print_table,
    watched,
    write_table,
)
from softclt.cli.settings import build_model

if TYPE_CHECKING:
    from rich.table import Table

    from softclt.data import SeriesTable
    from softclt.data.columns import Columns
    from softclt.tasks import Result

Probes = Annotated[
    list[str] | None,
    typer.Option(
        "--probe",
        metavar="NAME",
        help="svm, ridge, linear, knn; several share one fit.  [default: svm]",
    ),
]


def evaluate(
    task: Annotated[str, typer.Argument(metavar="TASK", help="See 'softclt list tasks'.")],
    data: options.Data,
    method: options.Method = "ts2vec",
    preset: options.Preset = None,
    settings: options.Settings = None,
    seeds: Annotated[int, typer.Option(min=1, help="Run with the seeds 0, 1, ...")] = 3,
    probe: Probes = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes side by side.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Results file, one JSON line a run; runs in it are kept.")
    ] = None,
    id: options.Id = None,
    time: options.Time = None,
    label: options.Label = None,
    values: options.Values = None,
    as_json: options.Json = False,
) -> None:
    """You wonder how well a method does on data with labels: fit, score, mean and spread."""
    if out is not None:
        check_suffix(out, (".jsonl",))
    model = build_model(method, preset, settings)

    from softclt.data import load
    from softclt.progress import progress_bar
    from softclt.tasks import tasks
    from softclt.tasks.runner import Run, run_all

    tasks[task]  # an unknown one is told the known ones before the data are read

    task_options = {"probe": probe[0] if len(probe) == 1 else probe} if probe else {}
    dataset = load(data, **options.column_names(id, time, label, values))
    runs = [Run(task, model, dataset, seed, task_options) for seed in range(seeds)]
    with progress_bar(f"{task} {data}", len(runs), watched()) as advance:
        results = run_all(runs, out, n_workers=jobs, on_result=lambda result: advance(1))
    if as_json:
        print_json({"results": [vars(result) for result in results], "out": out and str(out)})
    else:
        first = results[0]
        print_table(
            _score_table(results),
            f"{first.task} of {first.dataset} by {first.method}",
            f"{_unit(first)}mean ± standard deviation over {seeds} seed(s); "
            f"probe {first.probe or 'none'}; tau {first.tau_choice}.",
        )
    if out is not None:
        note(f"results in {out}")


def classify(
    train: Annotated[str, typer.Argument(metavar="TRAIN", help="Series with labels.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Series to label.")],
    out: Annotated[Path, typer.Option(help="Table to write: .csv or .parquet.")],
    method: options.Method = "ts2vec",
    preset: options.Preset = None,
    settings: options.Settings = None,
    probe: Annotated[str, typer.Option(help="svm, ridge, linear or knn.")] = "svm",
    seed: options.Seed = 0,
    id: options.Id = None,
    time: options.Time = None,
    label: options.Label = None,
    values: options.Values = None,
    as_json: options.Json = False,
) -> None:
    """You have a few labelled series and many new ones: write a label and its score for each.

    The score is a probability with --probe linear, and the margin of the label with --probe svm.
    """
    check_suffix(out, TABLE_SUFFIXES)
    model = build_model(method, preset, settings, random_state=seed)

    import numpy as np
    import pandas as pd

    from softclt.data import read_series
    from softclt.tasks.probes import class_scores, probes

    fit_probe = probes[probe]
    columns = options.column_names(id, time, label, values)
    known = read_series(train, **columns)
    if known.y is None:
        raise ValueError(f"{train} has no labels; name their column with --label")
    if len(np.unique(known.y)) < 2:
        raise ValueError(f"{train} has one class only; at least two are needed")
    unknown = _read_new(new, columns, known.channels)
    note(f"fitting {method} on {len(known.X)} series of {train}")
    model.fit(known.X)
    reader = fit_probe(model.transform(known.X), known.y)
    R = model.transform(unknown.X)  # (N, M)
    labels, scores = reader.predict(R), class_scores(reader, R)  # (N,), (N, L)
    kind = "probability" if hasattr(reader, "predict_proba") else "score"
    predictions = pd.DataFrame(
        {
            "id": unknown.ids,
            "label": [known.classes[i] for i in labels],
            kind: scores[np.arange(len(R)), np.searchsorted(reader.classes_, labels)],
        }
    )
    write_table(predictions, out)
    note(f"{len(predictions)} labels in {out}")
    if as_json:
        print_json({"out": str(out), "series": len(predictions), "classes": known.classes})


def _read_new(new: str, columns: "Columns", channels: list[str] | None) -> "SeriesTable":
    """Series to label: the channels of the training table, whether or not labels are there, too."""
    from softclt.data import DataError, read_series

    columns = columns.copy()
    if channels is not None:
        columns["values"] = channels
    try:
        return read_series(new, split="test", **columns)
    except DataError:
        if columns["label"] is None:
            raise
        columns["label"] = None
        return read_series(new, split="test", **columns)


def _unit(result: "Result") -> str:
    from softclt.reports.metric import Metric

    return "Per cent; " if all(Metric(name).percent for name in result.metrics) else ""


def _score_table(results: "list[Result]") -> "Table":
    """Mean and spread of every metric."""
    from rich.table import Table

    from softclt.reports.metric import Metric
    from softclt.reports.statistics import Summary

    table = Table("metric")
    table.add_column("mean", justify="right")
    for metric in results[0].metrics:
        found = Summary.of([r.metrics[metric] for r in results])
        table.add_row(metric, Metric(metric).with_spread(found.mean, found.spread))
    return table
