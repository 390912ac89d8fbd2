"""One data set of a suite, trained: all models that are missing, in one go."""

from collections.abc import Sequence
from typing import Any

from softclt.bench.units import Trained, Unit
from softclt.methods import EmbeddingEnsemble
from softclt.selection import data_distances, data_distances_key
from softclt.tasks.evaluation import Reading, seeded_clone, tasks
from softclt.tasks.kept import load_once
from softclt.tasks.together import Embedded, embed, trainings
from softclt.validation import Floats


class EmbeddedUnit:
    """A unit and what its models make of the series, as far as they are trained.

    Args:
        unit: Its data are loaded and checked here.

    Attributes:
        found: By model and seed: its embeddings, or why there are none.
    """

    def __init__(self, unit: Unit) -> None:
        data = load_once(unit.facts.asked) if unit.data is None else unit.data
        reading: Reading = tasks.tags(unit.task)["reading"]
        for row in unit.rows:
            reading.check(data, **row.options)
        self.unit = unit
        self.y_train, self.y_test = data.y_train, data.y_test
        self.found: dict[Trained, Embedded | str] = {}
        self._X_train, self._X_test = reading.series(data)
        self._models = {row.base: row.model for row in unit.rows}
        self._distances: dict[str, Floats] = {}

    def embed(self, wanted: Sequence[Trained]) -> None:
        """Train some models of the unit together, and embed its series with each."""
        clones = [seeded_clone(self._models[base], seed) for base, seed in wanted]
        found = _embed(clones, self._X_train, self._X_test)
        self.found |= dict(zip(wanted, found, strict=True))

    def parts(self) -> list[list[Trained]]:
        """Models and seeds that have to be trained: apart, but together where they share one."""
        parts: list[tuple[set[str], list[Trained]]] = []
        for base, seed in self.unit.embedded():
            keys = trainings(seeded_clone(self._models[base], seed))
            same = [part for part in parts if part[0] & keys]
            parts = [part for part in parts if part not in same]
            one = [trained for part in same for trained in part[1]]
            parts.append((keys.union(*(part[0] for part in same)), [*one, (base, seed)]))
        return [part for _, part in parts]

    def distances(self, base: str) -> Floats:
        """Distances in data space, as a model measures them, between what choices look at."""
        own = self._models[base]
        model = own.estimator if isinstance(own, EmbeddingEnsemble) else own
        key = data_distances_key(model)
        if key not in self._distances:
            there = (one.device for one in self.found.values() if isinstance(one, Embedded))
            self._distances[key] = data_distances(model, self._X_train, next(there, "cpu"))
        return self._distances[key]

    def others(self, base: str, seed: int) -> list[Floats]:
        """What the same model with other seeds makes of the training series."""
        found = [self.found.get((base, other)) for other in self.unit.seeds if other != seed]
        return [one.R_train for one in found if isinstance(one, Embedded)]

    @property
    def n_bytes(self) -> int:
        """Memory that the embeddings take."""
        return sum(one.n_bytes for one in self.found.values() if isinstance(one, Embedded))


def embed_unit(unit: Unit) -> EmbeddedUnit:
    """A unit with all its models trained in one go: what is left needs no GPU."""
    embedded = EmbeddedUnit(unit)
    embedded.embed(unit.embedded())
    for base in unit.measured():
        embedded.distances(base)
    return embedded


def _embed(models: Sequence[Any], X_train: Floats, X_test: Floats) -> list[Embedded | str]:
    """All together; where that fails, in halves, so that one takes few others down."""
    try:
        return [*embed(models, X_train, X_test)]
    except Exception as error:
        if len(models) == 1:
            return [f"{type(error).__name__}: {error}"]
    half = len(models) // 2
    return [*_embed(models[:half], X_train, X_test), *_embed(models[half:], X_train, X_test)]
