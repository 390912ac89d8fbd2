"""Which criterion chooses taus best? From results that hold every member of a grid on every set.

    python benchmarks/choosing.py results.jsonl [--probe ridge] [--where layers=last]
    python benchmarks/choosing.py results.jsonl --halvings 1000
    python benchmarks/choosing.py results.jsonl --halvings 1000 --rows "soft(*" --over hard
    python benchmarks/choosing.py results.jsonl --pair "hard, all layers" "hard · ridge"

A line is of the grid if its metrics hold, beside the accuracy on the test set, what the training
series say: `loo` (ridge, leave-one-out) and `criterion.NAME`. For each data set and seed a
criterion chooses the member that it likes best, the default among equals. The data sets, in
alphabetical order, are shuffled with a fixed seed and halved. The criterion without labels is the
one whose choices score best on the first half; all that is printed is of the second half, paired
over data sets. Rows in brackets are for information: nothing may be chosen by them any more.

One way to halve is one draw. With --halvings the same is done so many times, with seeds 0, 1, ...:
how often each criterion is the best of the first half, and what that wins on the second, mean and
standard deviation over the draws; and the same for members that all sets share, as a default does.

With --rows the candidates are the configurations of such names, each for all sets: what the best
of the first half is worth on the second, over the configurations that --over names.

--pair says what one configuration gains over another, on all sets and on each half. A pattern
stands for the mean of the configurations that it finds. --sets looks at some data sets alone.
"""

import argparse
import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt import TS2Vec
from softclt.reports.statistics import interval, overall
from softclt.selection import choose
from softclt.tasks import Result, read_results

PREFIX = "criterion."
HARD = {"tau_instance": None, "tau_temporal": None}
CHOSEN = ("train", "unlabelled", "oracle")  # lines that repeat a member of the grid
OF_A_RUN = ("random_state", "device")  # parameters that are no part of a configuration
Params = Mapping[str, Any]
Accuracy = dict[str, dict[int, float]]  # by data set and seed


@dataclass(frozen=True)
class Member:
    """A member of the grid on one data set with one seed."""

    params: Params
    accuracy: float
    metrics: Mapping[str, float]


Scores = dict[str, dict[int, list[Member]]]  # by data set and seed, in the order of the file


def wanted_lines(
    results: Sequence[Result], accuracy: str, probe: str | None = None, where: Params | None = None
) -> list[Result]:
    """Lines with an accuracy that were not chosen from others, of a probe and with parameters."""
    return [
        result
        for result in results
        if accuracy in result.metrics
        and result.tau_choice not in CHOSEN
        and probe in (None, result.probe)
        and all(result.params.get(name) == value for name, value in (where or {}).items())
    ]


def grid_of(lines: Sequence[Result], accuracy: str) -> Scores:
    """Members by data set and seed, where all are there; a member is what differs in the params."""
    lines = [line for line in lines if "loo" in line.metrics]
    if not lines:
        raise ValueError("no line of a grid is left: none has the metric 'loo'")
    varying = _varying(lines)
    found: dict[str, dict[int, dict[str, Member]]] = {}
    for line in lines:
        params = {name: line.params.get(name) for name in varying}
        key, members = json.dumps(params), found.setdefault(line.dataset, {})
        if key in members.setdefault(line.seed, {}):
            raise ValueError(
                f"two lines for {line.dataset}, seed {line.seed}, {key}; say which with --probe "
                "or --where"
            )
        members[line.seed][key] = Member(params, line.metrics[accuracy], line.metrics)
    size = len({key for seeds in found.values() for own in seeds.values() for key in own})
    whole = {
        dataset: {seed: list(own.values()) for seed, own in seeds.items() if len(own) == size}
        for dataset, seeds in found.items()
    }
    return {dataset: seeds for dataset, seeds in whole.items() if seeds}


def fixed(lines: Sequence[Result], scores: Scores, taus: Params, accuracy: str) -> Accuracy | None:
    """Accuracy with these taus, read as the grid was; None if some of it is missing."""
    grid = [line for line in lines if "loo" in line.metrics]
    free, probes = {*_varying(grid), *taus, *OF_A_RUN}, {line.probe for line in grid}
    same = {k: v for k, v in grid[0].params.items() if k not in free}
    found: Accuracy = {}
    for line in lines:
        if line.probe in probes and {**taus, **same}.items() <= line.params.items():
            found.setdefault(line.dataset, {})[line.seed] = line.metrics[accuracy]
    try:
        return {
            dataset: {seed: found[dataset][seed] for seed in seeds}
            for dataset, seeds in scores.items()
        }
    except KeyError:
        return None


def halves(datasets: Sequence[str], seed: int = 0) -> tuple[list[str], list[str]]:
    """Data sets to choose a criterion on, and those to report it on (one more if odd)."""
    names = sorted(datasets)
    order = [names[i] for i in np.random.default_rng(seed).permutation(len(names))]
    return sorted(order[: len(names) // 2]), sorted(order[len(names) // 2 :])


def chosen(scores: Scores, metric: str, default: Params) -> Accuracy:
    """Accuracy of what a metric chooses; if it is the accuracy itself, that is the oracle."""
    found: Accuracy = {}
    for dataset, seeds in scores.items():
        for seed, members in seeds.items():
            own = [i for i, member in enumerate(members) if _is_like(member.params, default)]
            said = [member.metrics[metric] for member in members]
            best = members[choose(said, own[0] if own else None)]
            found.setdefault(dataset, {})[seed] = best.accuracy
    return found


def criteria_of(scores: Scores, labels: bool) -> list[str]:
    """Metrics of the training series that every member has, with labels or without."""
    every = [m.metrics for seeds in scores.values() for own in seeds.values() for m in own]
    known = sorted(set.intersection(*(set(metrics) for metrics in every)))
    return [name for name in known if name.startswith("loo" if labels else PREFIX)]


def ranking(scores: Scores, default: Params) -> list[tuple[str, float]]:
    """Criteria without labels and the mean accuracy of their choices, the best first."""
    found = [(name, mean(chosen(scores, name, default))) for name in criteria_of(scores, False)]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))


def report(
    lines: Sequence[Result], accuracy: str, default: Params, seed: int = 0
) -> list[dict[str, Any]]:
    """Rows of the second half; the criterion without labels was chosen on the first."""
    scores = grid_of(lines, accuracy)
    first, second = ({name: scores[name] for name in half} for half in halves(list(scores), seed))
    if not first:
        raise ValueError(f"there are {len(scores)} complete data sets; two halves need 2 or more")
    order = ranking(first, default)
    if not order:
        raise ValueError(f"no metric {PREFIX}... is there for every member of the grid")
    names = [name for name, _ in order]
    rows = {
        "hard": fixed(lines, second, HARD, accuracy),
        "default": fixed(lines, second, default, accuracy),
        "train": chosen(second, "loo", default),
        f"unlabelled: {names[0].removeprefix(PREFIX)}": chosen(second, names[0], default),
        "oracle (by the test set)": chosen(second, accuracy, default),
    }
    labelled = [name for name in criteria_of(second, labels=True) if name != "loo"]
    for name in [*labelled, *names[1:]]:
        rows[f"({name.removeprefix(PREFIX)})"] = chosen(second, name, default)
    controls = {name: rows[name] for name in ("hard", "default")}
    table = [_row(name, found, controls) for name, found in rows.items() if found is not None]
    on_first = {name.removeprefix(PREFIX): round(100 * value, 2) for name, value in order}
    return [{"chosen_on": sorted(first), "reported_on": sorted(second), **on_first}, *table]


def halvings(
    lines: Sequence[Result], accuracy: str, default: Params, n: int
) -> list[dict[str, Any]]:
    """Which criterion, and which member for all sets, is best on random halves of the sets."""
    scores = grid_of(lines, accuracy)
    controls = {
        control: found
        for control, taus in (("hard", HARD), ("default", default))
        if (found := fixed(lines, scores, taus, accuracy)) is not None
    }
    criteria = {
        name.removeprefix(PREFIX): chosen(scores, name, default)
        for name in criteria_of(scores, labels=False)
    }
    members: dict[str, Accuracy] = {}
    for dataset, seeds in scores.items():
        for seed, own in seeds.items():
            for member in own:
                found = members.setdefault(json.dumps(member.params), {})
                found.setdefault(dataset, {})[seed] = member.accuracy
    return [
        {"choice": "criterion"} | _over_halvings(criteria, controls, n),
        {"choice": "one for all sets"} | _over_halvings(members, controls, n),
    ]


def best_row(
    results: Sequence[Result], accuracy: str, rows: str, over: Sequence[str], n: int
) -> list[dict[str, Any]]:
    """Which configuration, the same for all sets, is best on random halves of the sets.

    Data sets and seeds that one of them lacks are left out.
    """
    found = by_configuration(results, accuracy)
    names = _named(found, rows)
    if len(names) < 2 or not found.keys() >= set(over):
        raise ValueError(
            f"--rows {rows} finds {len(names)} configuration(s), 2 are needed, and --over names "
            f"{', '.join(over) or 'none'}; there are {', '.join(map(repr, found))}"
        )
    kept = shared({name: found[name] for name in {*names, *over}})
    candidates, others = ({name: kept[name] for name in part} for part in (names, over))
    n_sets = len(candidates[names[0]])
    if n_sets < 4:
        raise ValueError(f"these configurations share {n_sets} data set(s); 4 are needed")
    best = {"choice": "one for all sets", "sets": n_sets} | _over_halvings(candidates, others, n)
    table = [_row(name, own, others) for name, own in (others | candidates).items()]
    return [best, *sorted(table, key=lambda line: -line["accuracy"])]


def compare(
    results: Sequence[Result], accuracy: str, row: str, control: str, seed: int = 0
) -> list[dict[str, Any]]:
    """One configuration over another, on all data sets that both have and on each half.

    Paired by seed, where both have it. A pattern stands for the mean of those that it finds.
    """
    found = by_configuration(results, accuracy)
    own, other = _named(found, row), _named(found, control)
    kept = shared({name: found[name] for name in {*own, *other}}) if own and other else {}
    both = sorted(kept[own[0]]) if kept else []
    if len(both) < 4:
        raise ValueError(f"{row!r} and {control!r} share {len(both)} data set(s); 4 are needed")
    means = [
        np.mean([_by_set(kept[name], both) for name in names], axis=0) for names in (own, other)
    ]
    gain_of = dict(zip(both, 100 * (means[0] - means[1]), strict=True))
    rows = []
    for part, names in zip(("all", "first", "second"), (both, *halves(both, seed)), strict=True):
        gains = [float(gain_of[name]) for name in names]
        ends = [round(end, 2) for end in interval(gains)]
        said = {"sets": len(names), "gain": round(statistics.fmean(gains), 2), "gain_95": ends}
        rows.append({"row": row, "control": control, "half": part, **said})
    return rows


def shared(found: Mapping[str, Accuracy]) -> dict[str, Accuracy]:
    """Of several configurations, the data sets and seeds that all of them have."""
    first, *rest = found.values()
    seeds = {
        d: [k for k in own if all(k in r.get(d, {}) for r in rest)] for d, own in first.items()
    }
    return {
        name: {d: {k: own[d][k] for k in kept} for d, kept in seeds.items() if kept}
        for name, own in found.items()
    }


def by_configuration(results: Sequence[Result], accuracy: str) -> dict[str, Accuracy]:
    """Accuracy by the name of the configuration, data set and seed."""
    found: dict[str, Accuracy] = {}
    for line in results:
        if accuracy in line.metrics:
            own = found.setdefault(line.configuration, {}).setdefault(line.dataset, {})
            own[line.seed] = line.metrics[accuracy]
    return found


def mean(found: Accuracy) -> float:
    """Over data sets, of the means over seeds."""
    return statistics.fmean(statistics.fmean(seeds.values()) for seeds in found.values())


def main() -> None:
    """Print what was chosen on, with the ranking there, and a line a row."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path)
    parser.add_argument("--accuracy", default="accuracy", help="metric on the test set")
    parser.add_argument("--probe", help="lines of this probe alone")
    parser.add_argument("--where", nargs="*", default=[], metavar="PARAMETER=VALUE")
    parser.add_argument("--sets", nargs="*", metavar="NAME", help="these data sets, or patterns")
    parser.add_argument("--split-seed", type=int, default=0)
    parser.add_argument("--halvings", type=int, metavar="N", help="2 or more ways to halve instead")
    parser.add_argument("--pair", nargs=2, metavar=("ROW", "CONTROL"), help="two configurations")
    parser.add_argument("--rows", metavar="PATTERN", help="with --halvings: these configurations")
    parser.add_argument(
        "--over", nargs="*", default=[], metavar="ROW", help="what they are held to"
    )
    options = parser.parse_args()
    if options.halvings is not None and options.halvings < 2:
        parser.error(f"--halvings is {options.halvings}; 2 or more are needed for a spread")
    if options.rows is not None and options.halvings is None:
        parser.error("--rows needs --halvings N")
    where = dict(_value(text) for text in options.where)
    results = read_results(options.results)
    if options.sets is not None:
        results = [r for r in results if any(fnmatchcase(r.dataset, one) for one in options.sets)]
    lines = wanted_lines(results, options.accuracy, options.probe, where)
    model = TS2Vec()
    default = {"tau_instance": model.tau_instance, "tau_temporal": model.tau_temporal}
    try:
        if options.pair is not None:
            row, control = options.pair
            rows = compare(results, options.accuracy, row, control, options.split_seed)
        elif options.rows is not None:
            rows = best_row(results, options.accuracy, options.rows, options.over, options.halvings)
        elif options.halvings is not None:
            rows = halvings(lines, options.accuracy, default, options.halvings)
        else:
            rows = report(lines, options.accuracy, default, options.split_seed)
    except ValueError as error:
        parser.error(str(error))
    for row in rows:
        print(json.dumps(row))


def _over_halvings(
    candidates: Mapping[str, Accuracy], controls: Mapping[str, Accuracy], n: int
) -> dict[str, Any]:
    """How often each candidate is the best of the first half, and what that wins on the second."""
    names = sorted(next(iter(candidates.values())))
    by_set = {name: _by_set(found, names) for name, found in candidates.items()}
    others = {control: _by_set(found, names) for control, found in controls.items()}
    best, won = Counter[str](), {control: np.zeros(n) for control in controls}
    for seed in range(n):
        first, second = (np.isin(names, half) for half in halves(names, seed))
        winner = max(by_set, key=lambda name: by_set[name][first].mean())
        best[winner] += 1
        for control, other in others.items():
            won[control][seed] = (by_set[winner] - other)[second].mean()
    row: dict[str, Any] = {"halvings": n, "best_on_first_half": dict(best.most_common())}
    for control, gains in won.items():
        row[f"over_{control}"] = round(100 * gains.mean(), 2)
        row[f"over_{control}_sd"] = round(100 * gains.std(ddof=1), 2)
    return row


def _by_set(found: Accuracy, names: Sequence[str]) -> NDArray[np.float64]:
    """Means over seeds, in the order of the names."""
    return np.array([statistics.fmean(found[name].values()) for name in names])


def _named(found: Mapping[str, Accuracy], pattern: str) -> list[str]:
    """Configurations of this name, or those that the pattern finds."""
    return [pattern] if pattern in found else [name for name in found if fnmatchcase(name, pattern)]


def _varying(lines: Sequence[Result]) -> list[str]:
    own = [{k: json.dumps(v) for k, v in line.params.items()} for line in lines]
    names = dict.fromkeys(name for params in own for name in params if name not in OF_A_RUN)
    return [name for name in names if len({params.get(name) for params in own}) > 1]


def _is_like(params: Params, wanted: Params) -> bool:
    """Whether parameters have the wanted values, as far as they differ within the grid."""
    return all(params[name] == value for name, value in wanted.items() if name in params)


def _row(name: str, found: Accuracy, controls: Mapping[str, Accuracy | None]) -> dict[str, Any]:
    summary = overall(list(found.values()))
    row: dict[str, Any] = {
        "choice": name,
        "sets": len(found),
        "accuracy": round(100 * summary.mean, 2),
        "spread_over_seeds": round(100 * summary.spread, 2) if summary.n > 1 else None,
    }
    for control, other in controls.items():
        if other is not None and control != name:
            gains = [
                statistics.fmean(found[d].values()) - statistics.fmean(other[d].values())
                for d in found
            ]
            row[f"over_{control}"] = round(100 * statistics.fmean(gains), 2)
            row[f"over_{control}_95"] = [round(100 * end, 2) for end in interval(gains)]
    return row


def _value(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except json.JSONDecodeError:
        return name, value


if __name__ == "__main__":
    main()
