"""``bench``: run a suite of data sets, configurations and seeds, and go on after a break."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from softclt.cli import options
from softclt.cli.errors import command_line
from softclt.cli.output import (
    Output,
    check_extra,
    check_outputs,
    new_table,
    note,
    print_json,
    print_table,
    say,
    tell,
)
from softclt.progress import progress_bar, time_in_words

if TYPE_CHECKING:
    from softclt.bench.running import Plan
    from softclt.tasks.result import Result

SHOWN = 12  # names of data sets, and errors, that are written out


def bench(
    context: typer.Context,
    suite: Annotated[
        str,
        typer.Argument(
            metavar="SUITE", help="See 'softclt list suites'; or FILE.toml, FILE.toml:NAME."
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with data sets, looked at before those of $SOFTCLT_DATA."),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES", help="Only these data sets: names or patterns, commas between."
        ),
    ] = None,
    configurations: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Only this configuration; give it as often as needed."),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(metavar="NAMES", help="Only configurations of these methods, commas between."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Seeds 0, 1, ...; the suite's own if left out.")
    ] = None,
    select: Annotated[
        str | None,
        typer.Option(
            metavar="STRATEGIES",
            help="How grids choose: train, unlabelled, oracle, commas between; or default: not.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for SUITE.jsonl, one line a run.")] = Path(
        "results"
    ),
    workers: Annotated[
        int | None,
        typer.Option(min=1, help="Processes; 1, or with a GPU all cores but one, if left out."),
    ] = None,
    ray: Annotated[
        str | None,
        typer.Option(metavar="auto|ADDRESS|local", help="Work on a Ray cluster instead."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be run, and how long it may take.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """You wonder how methods compare on many data sets: run them all, over seeds, into one file.

    Stop it, kill it: the same command goes on where it was, and tries again what failed. Data sets
    that are not on your disk are listed and left out. The exit code is 1 if a run failed.
    """
    check_outputs(Output(out, goes_on=True))
    if ray is not None:
        check_extra("ray")
    if data is not None:
        if not data.is_dir():
            raise FileNotFoundError(f"--data {data}: no such folder")
        roots = [str(data), *filter(None, [os.environ.get("SOFTCLT_DATA")])]
        os.environ["SOFTCLT_DATA"] = os.pathsep.join(roots)  # workers look there, too

    from softclt.bench.asked import Asked
    from softclt.bench.estimates import estimate
    from softclt.bench.running import make_plan, run_plan
    from softclt.bench.suites import read_suite
    from softclt.methods.learner import find_device
    from softclt.tasks.kept import keeping

    where = "cpu" if ray is not None and device == "auto" else str(find_device(device))
    chosen = read_suite(
        suite,
        configurations=configurations or (),
        methods_only=_listed(methods),
        select=None if select is None else _listed([select]),
        seeds=seeds,
        device=None if device == "auto" else device,
    )
    file = out / f"{chosen.name}.jsonl"
    context.with_resource(keeping())  # data sets that the plan looks at are those that are run
    plan = make_plan(chosen, file, _listed(sets))
    for name, reason in plan.damaged:
        tell(f"{name} is left out: {reason}")
    if plan.missing:
        tell(f"not here, left out: {_some(plan.missing)}")
    if not plan.sets:
        raise ValueError(
            f"no data set of the suite {chosen.name!r} is here; set $SOFTCLT_DATA or --data to "
            'the folder that has them, or pip install "softclt[data]" for a few'
        )
    seconds, basis = estimate(plan, where, workers or 1, measured=True)
    if dry_run:
        _print_plan(plan, file, seconds, basis, as_json)
        return
    note(
        f"{plan.n_todo} runs on {len(plan.units)} data set(s) to go, on {where}, about "
        f"{time_in_words(seconds)}; into {file}"
    )
    Asked.of(plan, command_line()).write(file)
    with progress_bar(chosen.name, plan.n_todo, True) as advance:
        new = run_plan(
            plan,
            file,
            workers=workers,
            ray=ray,
            device=where,
            on_result=lambda result: advance(1),
        )
    _print_end(plan, new, file, as_json)
    if plan.damaged or any(result.error for result in new):
        raise typer.Exit(1)


def _listed(texts: list[str] | None) -> list[str]:
    return [part.strip() for text in texts or () for part in text.split(",") if part.strip()]


def _some(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:SHOWN])
    return shown if len(names) <= SHOWN else f"{shown} and {len(names) - SHOWN} more"


def _print_plan(plan: "Plan", file: Path, seconds: float, basis: str, as_json: bool) -> None:
    done = {facts.asked: 0 for facts in plan.sets}
    asked = {facts.fingerprint: facts.asked for facts in plan.sets}
    for result in plan.done:
        done[asked[result.fingerprint]] += 1
    todo = {unit.facts.asked: len(unit.todo) for unit in plan.units}
    names = [*(row.name for row in plan.suite.rows), *(one.name for one in plan.suite.choices)]
    if as_json:
        print_json(
            {
                "suite": plan.suite.name,
                "out": str(file),
                "configurations": names,
                "seeds": plan.suite.seeds,
                "sets": {name: {"done": done[name], "todo": todo.get(name, 0)} for name in done},
                "missing": plan.missing,
                "damaged": dict(plan.damaged),
                "groups": {facts.asked: facts.groups for facts in plan.sets},
                "todo": plan.n_todo,
                "seconds": seconds,
            }
        )
        return
    table = new_table("data set", "groups", numbers=("series", "steps", "there", "to go"))
    for facts in plan.sets:
        table.add_row(
            facts.asked,
            " ".join(facts.groups.values()),
            f"{facts.n_train} + {facts.n_test}",
            str(facts.length),
            str(done[facts.asked]),
            str(todo.get(facts.asked, 0)),
        )
    print_table(
        table,
        f"{plan.suite.name}: {plan.suite.about}",
        f"{len(names)} rows: {', '.join(names)}",
        f"{plan.suite.seeds} seed(s); {len(plan.done)} runs are in {file}, {plan.n_todo} to go: "
        f"about {time_in_words(seconds)} ({basis})",
    )


def _print_end(plan: "Plan", new: "list[Result]", file: Path, as_json: bool) -> None:
    failed = [result for result in new if result.error]
    if as_json:
        print_json(
            {
                "suite": plan.suite.name,
                "out": str(file),
                "there": len(plan.done),
                "new": len(new),
                "failed": [vars(result) for result in failed],
                "missing": plan.missing,
                "damaged": dict(plan.damaged),
            }
        )
        return
    for result in failed[:SHOWN]:
        say(f"failed: {result.dataset}, {result.configuration}, seed {result.seed}: {result.error}")
    if len(failed) > SHOWN:
        say(f"... and {len(failed) - SHOWN} more, each a line with its error in {file}")
    say(
        f"{plan.suite.name}: {len(new) - len(failed)} new run(s), {len(plan.done)} were there, "
        f"{len(failed)} failed; results in {file}"
    )
    say(f"see them: softclt report {file.parent}")
