"""What a server serves: folders and names, each of which says itself what it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from softclt import pretrained
from softclt.anomaly import AnomalyDetector
from softclt.anomaly.saving import KIND as DETECTOR
from softclt.classification import SeriesClassifier
from softclt.classification.saving import KIND as CLASSIFIER
from softclt.methods import load_model
from softclt.persistence import ModelFileError, read_config
from softclt.search import SeriesIndex
from softclt.search.description import DESCRIPTION as INDEX

_LOADERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    CLASSIFIER: ("classifier", SeriesClassifier.load),
    DETECTOR: ("detector", AnomalyDetector.load),
}


@dataclass(frozen=True)
class Served:
    """What answers requests; None where that is not served.

    Attributes:
        embedder: Turns series into vectors; that of the index if no other is given.
        classifier: Gives classes.
        detector: Finds alarms.
        index: Finds series like others.
        names: What each of them is called, by its part; of a folder, its own name alone.
    """

    embedder: Any = None
    classifier: Any = None
    detector: Any = None
    index: Any = None
    names: tuple[tuple[str, str], ...] = ()

    def paths(self) -> list[str]:
        """What may be asked for, by the parts that are there."""
        return [path for path, part in PARTS.items() if getattr(self, part) is not None]


#: Path of a request -> the part that answers it.
PARTS = {
    "/embed": "embedder",
    "/explore": "embedder",
    "/classify": "classifier",
    "/detect": "detector",
    "/search": "index",
}

#: What to start a server with, for those who ask for a part that is not there.
WANTED = {
    "embedder": "a model: a name of 'softclt list models', or a folder of 'softclt fit'",
    "classifier": "a folder that SeriesClassifier.save wrote",
    "detector": "a folder that AnomalyDetector.save wrote",
    "index": "a folder that 'softclt index' wrote",
}


def open_served(names: Sequence[str]) -> Served:
    """Load what is to be served, one thing of each kind.

    Args:
        names: Names of pre-trained models, and folders of models, classifiers, detectors, indexes.
    """
    found: dict[str, tuple[str, Any]] = {}
    for name in names:
        part, thing = _opened(name)
        if part in found:
            raise ValueError(
                f"{found[part][0]} and {name} are both served as {part}; give one of them"
            )
        found[part] = name, thing
    served = Served(
        **{part: thing for part, (_, thing) in found.items()},
        names=tuple((part, Path(name).name) for part, (name, _) in found.items()),
    )
    if served.index is not None and served.embedder is None:
        served = replace(served, embedder=served.index.model)
    return served


def _opened(name: str) -> tuple[str, Any]:
    """The part that a thing is, and the thing."""
    if pretrained.is_pretrained(name):
        return "embedder", load_model(name)
    folder = Path(name)
    if (folder / INDEX).is_file():
        index = SeriesIndex.load(folder)
        if not len(index):  # looks into the rows, which takes its time at first
            raise ValueError(f"{name} has no series yet; add some to it before it is served")
        return "index", index
    if not folder.is_dir():
        if len(folder.parts) > 1 or folder.suffix:
            raise ModelFileError(f"{name} is no folder of a model, and none of an index")
        pretrained.folder_of(name)  # an error that names those there are
    part, load = _LOADERS.get(read_config(folder)["method"], ("embedder", load_model))
    return part, load(folder)
