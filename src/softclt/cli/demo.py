"""``demo``: scores without training, then soft against hard, with a table and a picture."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softclt.cli import options
from softclt.cli.output import Output, check_outputs, note, print_json, print_table, say

if TYPE_CHECKING:
    from softclt.bench.runs import Run
    from softclt.tasks import Result
    from softclt.validation import Floats

DATASETS = ("ucr/GunPoint", "uea/BasicMotions", "uea/JapaneseVowels")
PICTURED = "uea/JapaneseVowels"
PICTURED_PER_CLASS = 4  # series of the batch whose soft assignments are shown
WORKERS = 2
QUICK_ITERATIONS = 20


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results and the picture.")] = Path(
        "demo-results"
    ),
    seeds: Annotated[int, typer.Option(min=1, help="Runs of every configuration.")] = 3,
    quick: Annotated[
        bool, typer.Option("--quick", help=f"Only {QUICK_ITERATIONS} training steps: a try-out.")
    ] = False,
    as_json: options.Json = False,
) -> None:
    """You want to see it work: on three real data sets, first without training, then with it.

    Embeds GunPoint, BasicMotions (6 channels) and JapaneseVowels (12 channels, varying length) with
    the pre-trained encoder and lets a ridge read that, in seconds. Then learns TS2Vec on each
    of them without labels, soft and hard, lets an SVM read what was learned, and shows accuracies,
    an untrained control and a picture. Takes some minutes on two cores; run it again after a break
    and it goes on where it was.
    """
    _check_extras()
    check_outputs(Output(out, goes_on=True))
    start = time.perf_counter()

    from softclt.bench.runs import Run, run_all
    from softclt.progress import progress_bar
    from softclt.reports.tables import comparison_table

    results_file, figure_file = out / "results.jsonl", out / "soft-and-hard.png"
    at_once = run_all(_without_training(), results_file)
    if not as_json:
        for line in _told(at_once, time.perf_counter() - start):
            say(line)
    models = configurations(quick)
    runs = [
        Run("classification", model, name, seed)
        for name in DATASETS
        for model in models.values()
        for seed in range(seeds)
    ]
    note(f"{len(runs)} runs in {WORKERS} processes, some minutes; results go to {results_file}")
    with progress_bar("fitting and scoring", len(runs), True) as advance:
        results = run_all(
            runs, results_file, n_workers=WORKERS, on_result=lambda result: advance(1)
        )
    note("drawing")
    draw(figure_file, models["hard"], models["soft"])

    if as_json:
        print_json(
            {
                "results": [vars(result) for result in [*at_once, *results]],
                "results_file": str(results_file),
                "figure": str(figure_file),
                "seconds": time.perf_counter() - start,
            }
        )
        return
    print_table(
        comparison_table(results, columns=list(models)),
        "Accuracy (%) of TS2Vec, read by an RBF SVM",
        *_notes(models, seeds, quick),
        "",
        f"results: {results_file}",
        f"figure:  {figure_file}",
        f"Done in {time.perf_counter() - start:.0f} s; everything is in {out}/",
    )


def _without_training() -> "list[Run]":
    """The pre-trained encoder, read by a ridge."""
    from softclt.bench.runs import Run
    from softclt.methods import Pretrained

    encoder = Pretrained(readout="rich")
    return [Run("classification", encoder, name, options={"probe": "ridge"}) for name in DATASETS]


def _told(results: "list[Result]", seconds: float) -> list[str]:
    width = max(len(result.dataset) for result in results)
    return [
        "Accuracy (%) without any training: the pre-trained encoder, read by a ridge",
        *(f"  {r.dataset:{width}}  {100 * r.metrics['accuracy']:.1f}" for r in results),
        f"after {seconds:.0f} s",
        "",
    ]


def configurations(quick: bool = False) -> dict[str, Any]:
    """Soft TS2Vec, its hard control that differs in the taus alone, and the untrained control."""
    from softclt.methods import TS2Vec

    iterations = QUICK_ITERATIONS if quick else None
    return {
        "untrained": TS2Vec(tau_instance=None, tau_temporal=None, max_iter=0),
        "hard": TS2Vec(tau_instance=None, tau_temporal=None, max_iter=iterations),
        "soft": TS2Vec(max_iter=iterations),
    }


def draw(path: Path, hard: Any, soft: Any) -> None:
    """The picture: soft assignments of a batch beside the test series as both models see them."""
    import numpy as np

    from softclt.data import load
    from softclt.parallel import in_processes
    from softclt.reports.figures import save_figure, soft_and_hard_figure
    from softclt.tasks import protocol_scaling

    data = load(PICTURED)
    assert data.y_train is not None
    assert data.y_test is not None
    wanted = [("hard", hard, PICTURED), ("soft", soft, PICTURED)]
    R = dict(in_processes(_test_embedding, wanted, WORKERS))  # (N, M) each
    X_train, _ = protocol_scaling(data)
    by_class = [np.flatnonzero(data.y_train == label) for label in np.unique(data.y_train)]
    batch = np.concatenate([rows[:PICTURED_PER_CLASS] for rows in by_class])
    figure = soft_and_hard_figure(
        _weights(X_train, soft)[np.ix_(batch, batch)],
        data.y_train[batch],
        {f"{name}: test series": R[name] for name in ("hard", "soft")},
        data.y_test,
        data.meta["classes"],
        heading=f"{PICTURED}: TS2Vec without labels, seed 0; t-SNE, coloured by class",
        projection="tsne",
    )
    save_figure(figure, path)


def _test_embedding(wanted: tuple[str, Any, str]) -> "tuple[str, Floats]":
    """A title, and test series as the model of seed 0 sees them; runs in a worker."""
    from sklearn.base import clone

    from softclt.data import load
    from softclt.parallel import use_one_core
    from softclt.tasks import protocol_scaling

    use_one_core()
    title, model, name = wanted
    X_train, X_test = protocol_scaling(load(name))
    return title, clone(model).set_params(random_state=0).fit(X_train).transform(X_test)


def _weights(X: "Floats", model: Any) -> "Floats":
    """Soft assignments between series as ``model`` makes them in training, ``(N, N)``."""
    import torch

    from softclt.assignments import instance_weights
    from softclt.distances import pairwise_distance

    distances = pairwise_distance(X, metric=model.distance, normalize=model.distance_normalize)
    weights = instance_weights(torch.as_tensor(distances), model.tau_instance, model.alpha)
    assert weights is not None  # the model is soft
    return weights.numpy()


def _notes(models: dict[str, Any], seeds: int, quick: bool) -> list[str]:
    soft = models["soft"]
    lines = [
        f"Mean ± standard deviation over {seeds} seed(s); soft − hard is paired by seed.",
        f"Tau: the library's defaults (instance {soft.tau_instance:g}, temporal "
        f"{soft.tau_temporal:g}),",
        "the same for all sets. Hard differs in the taus alone; untrained is the control.",
        "Three small sets show how it works, not which is better in general.",
    ]
    if quick:
        lines.append(f"--quick: {QUICK_ITERATIONS} training steps only, so do not quote these.")
    return lines


def _check_extras() -> None:
    try:
        import aeon  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ModuleNotFoundError(
            f"the demo needs {error.name or 'aeon and matplotlib'}: "
            "pip install 'softclt[data,report]'"
        ) from None
