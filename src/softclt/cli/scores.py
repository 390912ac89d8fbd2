"""``evaluate``: how good a method is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softclt.cli import options
from softclt.cli.errors import about
from softclt.cli.output import (
    Output,
    check_outputs,
    new_table,
    note,
    print_json,
    print_table,
)
from softclt.cli.settings import build_model, check_input, parse_settings

if TYPE_CHECKING:
    from rich.table import Table

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
Method = Annotated[
    str | None,
    typer.Option(
        help="See 'softclt list methods'; for the task supervised, 'softclt list classifiers'.  "
        "[default: ts2vec; series-classifier]",
    ),
]


@options.reads_tables
def evaluate(
    task: Annotated[str, typer.Argument(metavar="TASK", help="See 'softclt list tasks'.")],
    data: options.Data,
    method: Method = None,
    preset: options.Preset = None,
    settings: options.Settings = None,
    seeds: Annotated[int, typer.Option(min=1, help="Run with the seeds 0, 1, ...")] = 3,
    probe: Probes = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            help="Any option of the task; give it as often as needed.",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes side by side.")] = 1,
    out: Annotated[
        Path | None, typer.Option(help="Results file, one JSON line a run; runs in it are kept.")
    ] = None,
    as_json: options.Json = False,
    *,
    columns: "Columns",
) -> None:
    """You wonder how well a method does on data with labels: fit, score, mean and spread."""
    check_outputs(Output(out, (".jsonl",), goes_on=True), reads=[data])
    check_input(data)

    from softclt.bench.runs import Run, run_all
    from softclt.data import load
    from softclt.progress import progress_bar
    from softclt.tasks.evaluation import models_of

    table, usual = models_of(task)  # an unknown one is told the known ones before data are read
    method = usual if method is None else method
    model = build_model(method, preset, settings, table)
    task_options = parse_settings(option, "--option shares=[5,20]")
    if probe:
        task_options["probe"] = probe[0] if len(probe) == 1 else probe
    dataset = load(data, **columns)
    runs = [Run(task, model, dataset, seed, task_options) for seed in range(seeds)]
    from softclt.bench.estimates import training_words

    words = training_words(model, dataset.X_train.shape)
    note(f"{task} of {data} by {method}: {seeds} run(s), one for each seed{words} for each")
    with about(data), progress_bar(f"{task} {data}", len(runs), True) as advance:
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


def _unit(result: "Result") -> str:
    from softclt.reports.metric import Metric

    return "Per cent; " if all(Metric(name).percent for name in result.metrics) else ""


def _score_table(results: "list[Result]") -> "Table":
    """Mean and spread of every metric."""
    from softclt.reports.metric import Metric
    from softclt.reports.statistics import Summary

    table = new_table("metric", numbers=["mean"])
    for metric in results[0].metrics:
        found = Summary.of([r.metrics[metric] for r in results])
        table.add_row(metric, Metric(metric).with_spread(found.mean, found.spread))
    return table
