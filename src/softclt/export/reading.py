"""From series to what `transform` of a model gives, as a graph."""

from typing import Any

import numpy as np

from softclt.encoders.residual import ResidualEncoder
from softclt.export import networks, series, whole
from softclt.export.graph import ExportError, Graph, Value
from softclt.methods import Pretrained, RepresentationLearner, SeriesContrast
from softclt.methods.pretrained import COARSER
from softclt.methods.series_contrast import EVEN

INPUT, OUTPUT = "series", "embeddings"


def graph_of(model: RepresentationLearner) -> Any:
    """A fitted model as an ONNX graph from ``series`` to ``embeddings``."""
    n_channels = model.n_features_in_
    graph = Graph()
    shape: list[str | int] = [
        "n_series",
        "n_channels" if n_channels is None else n_channels,
        "n_steps",
    ]
    x = graph.input(INPUT, np.float64, shape)
    whole_series = isinstance(model, SeriesContrast)
    result = _of_whole_series(model, x) if whole_series else _of_steps(model, x)
    size = n_numbers(model)
    return graph.model(result, OUTPUT, ["n_series", "n_numbers" if size is None else size])


def n_numbers(model: RepresentationLearner) -> int | None:
    """M; None where it depends on the number of channels."""
    if model.n_features_in_ is None and getattr(model, "channels", "") != "mean":
        return None
    return len(model.get_feature_names_out())


def _of_steps(model: RepresentationLearner, x: Value) -> Value:
    """Pooled over the steps of each series."""
    graph, encoder = x.graph, networks.alone(model.module_)
    observed = ~x.is_missing().any(1)  # (N, 1, T)
    own = observed.where(series.scaled(x, model.scale_), 0.0)
    pooling, layers = model.read_out()
    seen = networks.Seen(own, observed, model.n_features_in_)
    z = graph.side_by_side(networks.blocks(encoder, seen, layers == "all"), axis=1)  # (N, M, T)
    if not encoder.mask_padding:  # every step counts
        observed = observed.graph.op("Or", observed, ~observed)
    return pooled(z, observed, pooling)


def pooled(z: Value, real: Value, pooling: str) -> Value:
    """The twin of `softclt.inference.pool`, ``(N, M, T)`` over the real steps ``(N, 1, T)``."""
    count = real.cast(np.float32).sum(2)  # (N, 1, 1)
    parts = []
    for kind in pooling.split("+"):
        if kind == "max":
            parts.append(real.where(z, float("-inf")).max(2))
        else:
            values = z if kind == "mean" else (z > 0).cast(np.float32)
            parts.append(real.where(values, 0.0).sum(2) / count)
    out = (count > 0).where(z.graph.side_by_side(parts, axis=1), float("nan"))
    return out.reshape(0, -1)


def _of_whole_series(model: SeriesContrast, x: Value) -> Value:
    """Each channel at some steps, pooled; channels side by side, or their mean."""
    encoder = networks.alone(model.module_)
    if not isinstance(encoder, ResidualEncoder):
        raise ExportError(
            f"{type(model).__name__} with a {type(encoder).__name__} has no ONNX form"
        )
    graph = x.graph
    n, d = x.size(0), x.size(1)
    least, most = model.read_lengths()
    steps = (series.lengths(x) + (EVEN - 1)) // EVEN * EVEN
    steps = steps.at_least(min(least, most)).at_most(most)  # (N, 1)
    steps = steps.expand(1, d).reshape(-1, 1)  # (N D, 1)
    rows = x.reshape(-1, x.size(2))  # (N D, T)
    there = ~rows.is_missing()

    pooling, layers = model.read_out()
    rich = isinstance(model, Pretrained) and model.readout == "rich"
    seen, parts = series.resampled(rows, there, steps), []
    for times in (1, *COARSER) if rich else (1,):
        own, fewer = seen, steps
        if times > 1:
            fewer = (steps // times).at_least(2)
            inside = graph.count_up(seen.size(1)) < steps
            own = series.resampled(seen, inside, fewer)
        h = own.cast(np.float32).reshape(0, 1, -1)
        outputs = whole.blocks(encoder, whole.Rows(h, fewer.reshape(0, 1, 1)))
        outputs = outputs if layers == "all" else outputs[-1:]
        parts.append(whole.read_out(outputs, pooling.split("+")))
    if rich:
        parts.append(series.level_and_scale(rows, there))
    R = graph.side_by_side(parts, axis=1).reshape(n, d, -1)
    some = there.any(1).reshape(n, d, 1)
    if isinstance(model, Pretrained) and model.channels == "mean":
        R = some.where(R, 0.0).sum(1) / some.cast(np.float32).sum(1)
    return some.any(1).where(R, float("nan")).reshape(n, -1)
