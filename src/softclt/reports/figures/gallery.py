"""Every picture by name, with the models it needs and a caption that says what they are."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from softclt.data import Dataset
from softclt.data.dataset import Split
from softclt.methods import TS2Vec
from softclt.registry import Registry
from softclt.reports.figures.assignments import (
    assignment_curves,
    pooled_hierarchy,
    temporal_designs,
)
from softclt.reports.figures.instances import instance_maps, neighbourhood_maps
from softclt.reports.figures.layers import distance_matrices, layer_distances
from softclt.reports.figures.study import Study, sample
from softclt.reports.figures.synthetic import synthetic_families
from softclt.reports.figures.timestamps import (
    phases,
    series_and_timestamps,
    timestamps_over_training,
)
from softclt.reports.figures.training import training_curves
from softclt.validation import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_IN_MATRIX = 120  # series that a small panel can show
MOST_IN_MAP = 500

_NEAR_IN_TIME = (
    "Near in time: the share of a step's 10 nearest neighbours in the embedding that are among its "
    "10 nearest in time."
)
_TSNE = "t-SNE of the standardised embedding, perplexity 30 or a third of the other points."


class Picture(NamedTuple):
    """A figure with what is said above and below it."""

    title: str
    caption: str
    figure: "Figure"


figures: Registry[Callable[[Study], Picture]] = Registry("figure")


def figures_for_page(
    names: Sequence[str] | None = None,
    data: str | Dataset | None = None,
    model: TS2Vec | None = None,
) -> list[Picture]:
    """Titles, captions and figures by name; see :func:`draw` for the arguments."""
    return [picture for _, picture in draw(names, data, model)]


def draw(
    names: Sequence[str] | None = None,
    data: str | Dataset | None = None,
    model: TS2Vec | None = None,
) -> Iterator[tuple[str, Picture]]:
    """Names and pictures, each as soon as it is drawn; models are trained once for each data set.

    Args:
        names: Registered figures; all of them if None. Their tag ``data`` names the set that each
            is drawn from, None where it needs none.
        data: For all figures, instead of their own.
        model: The soft model, for other settings, steps or seed than a `Study` has by default; its
            hard control follows it.
    """
    names = list(figures) if names is None else names
    drawings = [figures[name] for name in names]  # an unknown name is told before any work
    studies: dict[str | None, Study] = {}
    for name, drawing in zip(names, drawings, strict=True):
        key = figures.tags(name)["data"] if data is None else "given"
        if key not in studies:
            studies[key] = Study(key if data is None else data, model)
        yield name, drawing(studies[key])


@figures.register("lags", data=None)
def lags(study: Study) -> Picture:
    """Soft assignments over the lag between steps, for several taus (the paper's Figure 2a)."""
    caption = (
        "Weight of a pair of steps over their lag, 2 / (1 + exp(tau lag)). A small tau is soft, a "
        "large one nearly hard. Computed, not learned: no data."
    )
    return Picture("Soft assignments over lag", caption, assignment_curves())


@figures.register("designs", data=None)
def designs(study: Study) -> Picture:
    """Temporal designs: neighbor, linear, gaussian, sigmoid (the paper's appendix)."""
    caption = (
        "Four ways to weigh a pair of steps by its lag, in a series of 16 steps, with taus from "
        "the paper's grids. neighbor: tau is a share of the length. linear has no tau. gaussian: "
        "tau is one over the standard deviation. Computed, not learned: no data."
    )
    return Picture("Temporal designs", caption, temporal_designs())


@figures.register("hierarchy", data="ucr/GunPoint")
def hierarchy(study: Study) -> Picture:
    """A series and its embedding, max-pooled, with the weights of each level (Figure 2b)."""
    tau, growth = study.model.tau_temporal or 1.0, study.model.tau_growth
    values, Z = study.series(), study.steps_of(study.trained["soft"])
    caption = (
        "The first training series and its soft embedding, pooled by 2 from level to level. "
        "Above each panel: how alike neighbouring steps are (lag-one correlation; cosine without "
        "the mean). Right: the weight of a pair of steps; with a growing tau it decays as before "
        f"in original time, with a constant one it reaches further. {study.facts}"
    )
    return Picture("The pooled hierarchy", caption, pooled_hierarchy(values, Z, tau, growth))


@figures.register("layers", data="ucr/GunPoint")
def layers(study: Study) -> Picture:
    """Distances between series through the encoder's layers, hard against soft (Figure 4)."""
    rows = sample(MOST_IN_MATRIX, len(study.X), study.labels)
    by_model = {
        name: layer_distances(model, study.X[rows]) for name, model in study.with_control.items()
    }
    labels = None if study.labels is None else study.labels[rows]
    figure = distance_matrices(study.distances(rows), by_model, labels, study.classes)
    caption = (
        f"Distances between {len(rows)} training series: {study.model.distance} between the data, "
        "Euclidean between what each layer makes of them (maximum over time). Bright is close. ρ "
        f"is Spearman's correlation with the distances of the data, over all pairs. {study.facts}"
    )
    return Picture("Distances through the layers", caption, figure)


@figures.register("timestamps", data="ucr/GunPoint")
def timestamps(study: Study) -> Picture:
    """The steps of one series over training, hard against soft (Figure 5)."""
    encodings = {
        name: {step: study.steps_of(model) for step, model in moments.items()}
        for name, moments in study.over_training.items()
    }
    caption = (
        "Each point is a step of the first training series; the line joins them in time. "
        f"{_NEAR_IN_TIME} {_TSNE} {study.facts}"
    )
    figure = timestamps_over_training(encodings, seed=study.seed)
    return Picture("Steps of a series over training", caption, figure)


@figures.register("instances", data="ucr/GunPoint")
def instances(study: Study) -> Picture:
    """The series in the embedding, coloured by class, hard against soft (appendix)."""
    part: Split = "train" if study.data.X_test is None else "test"
    table = study.data.table(part)
    X, labels = table.X, table.y
    rows = sample(MOST_IN_MAP, len(X), labels)
    embeddings = {name: model.transform(X[rows]) for name, model in study.with_control.items()}
    own = None if labels is None else labels[rows]
    caption = (
        f"{len(rows)} {part} series, coloured by class, which no model has seen. Under each panel: "
        "how many have a nearest neighbour of their own class, counted in the embedding. "
        f"{_TSNE} {study.facts}"
    )
    figure = instance_maps(embeddings, own, study.classes, seed=study.seed)
    return Picture("Series in the embedding", caption, figure)


@figures.register("neighbourhoods", data="ucr/GunPoint")
def neighbourhoods(study: Study) -> Picture:
    """Embedding beside input space, coloured by neighbourhood in the input space (appendix)."""
    rows = sample(MOST_IN_MAP, len(study.X), study.labels)
    between = study.distances(rows)
    embeddings = {name: model.transform(study.X[rows]) for name, model in study.trained.items()}
    caption = (
        f"Left: {len(rows)} training series in groups of close ones ({study.model.distance}, "
        "Ward's tree). Right: the same series, in the same colours, in the embeddings. Under each: "
        "the share of a series' 10 nearest neighbours that are among its 10 nearest in the input "
        f"space. {_TSNE} {study.facts}"
    )
    figure = neighbourhood_maps(study.X[rows], between, embeddings, seed=study.seed)
    return Picture("Embedding beside input space", caption, figure)


@figures.register("seasonal", data="ucr/Adiac")
def seasonal(study: Study) -> Picture:
    """The steps of a seasonal series, by time and by value, hard against soft (appendix)."""
    values, encodings = _one_series(study, 0)
    caption = (
        "The first training series and its steps in the embeddings, coloured by time (above) and "
        "by value (below): where equal values of different seasons lie apart, the season is known. "
        f"{_NEAR_IN_TIME} {_TSNE} {study.facts}"
    )
    figure = series_and_timestamps(values, encodings, seed=study.seed)
    return Picture("Steps of a seasonal series", caption, figure)


@figures.register("shifts", data="ucr/FreezerRegularTrain")
def shifts(study: Study) -> Picture:
    """The steps of a series whose level jumps, by phase, hard against soft (appendix)."""
    n_phases = [phases(study.series(i)).max() for i in range(len(study.X))]
    row = int(np.argmax(n_phases))
    values, encodings = _one_series(study, row)
    own = phases(values)
    caption = (
        f"Training series {row}, the first of those with most phases ({own.max() + 1}, cut where "
        "the mean of 8 steps jumps by a quarter of the range), and its steps in the embeddings. "
        f"{_NEAR_IN_TIME} Below: those that are in its phase. {_TSNE} {study.facts}"
    )
    figure = series_and_timestamps(values, encodings, ("phase", own), seed=study.seed)
    return Picture("Steps of a series with shifts", caption, figure)


@figures.register("training", data="ucr/GunPoint")
def training(study: Study) -> Picture:
    """Losses over training, hard and soft."""
    losses = {name: model.history_["loss"] for name, model in study.trained.items()}
    caption = (
        "Loss of each training step, and its running mean. Hard and soft losses are means of "
        f"different sums: compare their course, not their height. {study.facts}"
    )
    return Picture("Training", caption, training_curves(losses))


@figures.register("synthetic", data=None)
def synthetic(study: Study) -> Picture:
    """Synthetic series to learn from, in families of one process each."""
    caption = (
        "Series of 512 steps by synthetic_series(48, 512, siblings=4). Siblings have the same "
        "kinds of parts, sizes and periods; noise, places and phases are drawn anew. Computed, "
        "not learned: no data."
    )
    return Picture("Synthetic series", caption, synthetic_families())


def _one_series(study: Study, row: int) -> tuple[Floats, dict[str, Floats]]:
    encodings = {name: study.steps_of(model, row) for name, model in study.with_control.items()}
    return study.series(row), encodings
