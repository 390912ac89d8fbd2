"""What is done with the series of a request."""

from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from softclt.anomaly import find_alarms
from softclt.data import SeriesTable
from softclt.serving.answers import Answer
from softclt.serving.batching import Batcher
from softclt.serving.limits import Limits, Refusal
from softclt.serving.opening import PARTS, WANTED, Served
from softclt.serving.streams import Streams
from softclt.validation import Floats

TSNE_AT_MOST = 500  # series whose map is a t-SNE, which takes a second for so many


class Service:
    """Answers requests from what is served.

    Args:
        served: Models.
        batcher: Computes.
        limits: Of the server.
    """

    def __init__(self, served: Served, batcher: Batcher, limits: Limits) -> None:
        self.served, self._batcher, self._limits = served, batcher, limits
        detector = served.detector
        self.streams = Streams(lambda: _bounded_stream(detector), limits)

    async def embed(self, table: SeriesTable) -> Answer:
        """A vector for each series."""
        return Answer({"id": table.ids, "embedding": await self._embeddings(table)})

    async def classify(self, table: SeriesTable) -> Answer:
        """The likeliest class of each series, and the probabilities of all."""
        classifier = self.served.classifier
        self._check_channels(classifier.n_features_in_, table)
        found = await self._batcher.submit(classifier.predict_proba, table.X, "classify")
        probabilities = np.array(found)  # (N, L)
        best = probabilities.argmax(axis=1)
        columns = {
            "id": table.ids,
            "label": classifier.classes_[best].tolist(),
            "probability": probabilities.max(axis=1),
            "probabilities": probabilities,
        }
        return Answer(columns, {"classes": classifier.classes_.tolist()})

    async def search(self, table: SeriesTable, k: int, where: str | None) -> Answer:
        """The series of the index that are most like each of these."""
        import pandas as pd

        if k > self._limits.hits:
            raise Refusal(413, f"k is {k}; this server gives at most {self._limits.hits} hits")
        work = partial(_hits, self.served.index, k, where)
        parts = await self._batcher.submit(work, table.X, ("search", k, where))
        lengths = [len(part) for part in parts]
        hits = pd.concat(parts, ignore_index=True).drop(columns="query")
        queries = [name for name, n in zip(table.ids, lengths, strict=True) for _ in range(n)]
        return Answer({"query": queries, **{str(name): _plain(hits[name]) for name in hits}})

    async def detect(self, table: SeriesTable, steps: bool) -> Answer:
        """The alarms of each series, or score, level and alarm of each of its steps."""
        detector = self.served.detector
        self._check_channels(detector.n_features_in_, table)
        judged = await self._batcher.submit(partial(_judged, detector), table.X)
        rows = _steps_of if steps else _alarms_of
        return rows(table, judged, detector.gap)

    async def follow(self, name: str, table: SeriesTable) -> Answer:
        """Score and alarm of the steps that come next in a stream."""
        n, _, t = table.X.shape
        if n != 1:
            raise Refusal(422, f"the body has {n} series; a stream gets the next steps of one")
        self._check_channels(self.served.detector.n_features_in_, table)
        if t > self._limits.stream_steps:
            raise Refusal(
                413,
                f"the body has {t:,} steps; a stream gets at most {self._limits.stream_steps:,} "
                "at a time",
            )
        (found,) = await self._batcher.submit(lambda X: [self.streams.push(name, X[0])], table.X)
        columns = {
            "step": [step for step, _, _ in found],
            "score": np.array([score for _, score, _ in found], dtype=np.float64),
            "alarm": [alarm for _, _, alarm in found],
        }
        return Answer(columns, {"stream": name})

    async def end(self, name: str) -> bool:
        """Forget a stream; whether there was one."""
        nothing = np.empty((1, 1, 1))
        (ended,) = await self._batcher.submit(lambda _: [self.streams.end(name)], nothing)
        return bool(ended)

    async def explore(self, table: SeriesTable) -> str:
        """A page with a map of the series, coloured by their classes."""
        if len(table) < 3:
            raise Refusal(422, f"the body has {len(table)} series; a map needs at least 3")
        embeddings = await self._embeddings(table)
        classes = None
        if self.served.classifier is not None:
            classes = (await self.classify(table)).columns["label"]

        def work(_: Floats) -> list[str]:
            import pandas as pd

            from softclt.reports.explore import explore_page
            from softclt.reports.metadata import columns_of_series

            columns = columns_of_series(table, None)
            if classes is not None:
                columns.insert(0, "class", pd.Series(classes))
            projection = "tsne" if len(table) <= TSNE_AT_MOST else "pca"
            model = dict(self.served.names).get("embedder", "that of the index")
            page = explore_page(table, embeddings, columns, model=model, projection=projection)
            return [page.html]

        (html,) = await self._batcher.submit(work, table.X[:1])
        return str(html)

    async def _embeddings(self, table: SeriesTable) -> Any:
        embedder = self.served.embedder
        self._check_channels(getattr(embedder, "n_features_in_", None), table)
        return np.array(await self._batcher.submit(embedder.transform, table.X, "embed"))

    def _check_channels(self, wanted: int | None, table: SeriesTable) -> None:
        given = table.X.shape[1]
        if wanted is not None and wanted != given:
            raise Refusal(422, f"the series have {given} channel(s); the model takes {wanted}")


def missing_part(path: str) -> str:
    """What to say of a path whose part is not served; nothing for a path that there is not."""
    part = PARTS.get(path)
    return "" if part is None else f"no {part} is served; start 'softclt serve' with {WANTED[part]}"


def _bounded_stream(detector: Any) -> Any:
    """A stream of a detector, if its memory does not grow."""
    for part in (detector.scorer_, detector.threshold_):
        if getattr(part, "max_excesses", 0) is None:
            raise ValueError("the detector keeps all that is strange; fit it with max_excesses")
    return detector.stream()


def _hits(index: Any, k: int, where: str | None, X: Floats) -> list[Any]:
    """The hits of each query, as frames."""
    hits = index.search(X, k, where)
    ends = np.searchsorted(hits["query"], np.arange(len(X)), side="right")
    return [hits.iloc[start:end] for start, end in pairwise([0, *ends])]


def _plain(column: Any) -> Any:
    """A column of a frame as values of Python, None where missing."""
    if column.dtype.kind in "biuf":
        return column.to_numpy()
    return [None if one != one or one is None else one for one in column.tolist()]


def _judged(detector: Any, X: Floats) -> list[tuple[Floats, Floats]]:
    """Scores and levels ``(T_i,)`` of each series."""
    scores = detector.anomaly_scores(X)
    return list(zip(scores, detector.levels(scores), strict=True))


def _steps_of(table: SeriesTable, judged: list[tuple[Floats, Floats]], gap: int) -> Answer:
    n, t = len(table), table.X.shape[2]
    scores, levels = (np.concatenate(own) for own in zip(*judged, strict=True))
    columns: dict[str, Any] = {
        "id": [name for name in table.ids for _ in range(t)],
        "step": np.tile(np.arange(t), n),
        "score": scores,
        "level": levels,
        "alarm": scores > levels,
        "values": table.X.swapaxes(1, 2).reshape(n * t, -1),  # (N T, D)
    }
    real = ~np.isnan(table.X).all(axis=1).ravel()  # what pads short series has no row
    kept = np.flatnonzero(real | ~np.isnan(scores))
    columns = {
        name: own[kept] if isinstance(own, np.ndarray) else [own[i] for i in kept]
        for name, own in columns.items()
    }
    return Answer(columns)


def _alarms_of(table: SeriesTable, judged: list[tuple[Floats, Floats]], gap: int) -> Answer:
    alarms = [(i, alarm) for i, own in enumerate(judged) for alarm in find_alarms(*own, gap)]
    columns: dict[str, Any] = {
        "id": [table.ids[i] for i, _ in alarms],
        "start": [alarm.start for _, alarm in alarms],
        "end": [alarm.end for _, alarm in alarms],
        "severity": np.array([alarm.severity for _, alarm in alarms], dtype=np.float64),
    }
    if table.times is not None:
        for end in ("start", "end"):
            own = [table.times[i, getattr(alarm, end)] for i, alarm in alarms]
            columns[f"{end}_time"] = table.as_written(np.array(own, dtype=table.times.dtype))
    return Answer(columns)
