"""Calls of everything that is registered, with arguments that nobody should give."""

import os
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import softclt
from attacks.cases import RIGHT, WrongError
from softclt import (
    AnomalyDetector,
    Forecaster,
    SemiSupervisedClassifier,
    SeriesClassifier,
    load_pretrained,
    pairwise_distance,
)
from softclt.anomaly.scorers import scorers
from softclt.anomaly.thresholds import thresholds
from softclt.assignments import assignments
from softclt.bench.sets import facts_of, groups, rules
from softclt.classification.blocks import blocks
from softclt.data import Dataset, datasets
from softclt.data.catalog import archives
from softclt.distances import distances
from softclt.methods import methods
from softclt.pretrained import names as pretrained_names
from softclt.probes import probes
from softclt.reports.figures import draw, figures
from softclt.selection import criteria, embedding_score
from softclt.tasks import tasks
from softclt.training.schedules import schedules
from softclt.validation import check_series

Rng = np.random.Generator
_SIZES = {"output_dims": 4, "hidden_dims": 4, "depth": 2, "widths": (4, 4), "width": 4}
_FEW = {"max_iter": 2, "label_iter": 2, "batch_size": 4, "queue_size": 8, "timesteps": 2}


def _shaped(rng: Rng) -> Any:
    """A few series of any small shape."""
    n, d, t = rng.integers(1, 7), rng.integers(1, 4), int(rng.choice([1, 2, 3, 5, 9, 17, 40, 90]))
    return rng.normal(size=(n, d, t))


def _ragged(rng: Rng) -> Any:
    d = int(rng.integers(1, 3))
    return [rng.normal(size=(d, int(rng.integers(1, 40)))) for _ in range(rng.integers(1, 6))]


def _with_gaps(rng: Rng) -> Any:
    X = _shaped(rng)
    X[rng.random(X.shape) < rng.choice([0.05, 0.5, 0.95])] = np.nan
    return X


def _scaled(rng: Rng) -> Any:
    return _shaped(rng) * 10.0 ** float(rng.integers(-300, 300))


def _one_cell(rng: Rng) -> Any:
    X = _shaped(rng)
    X.flat[int(rng.integers(X.size))] = rng.choice([1e300, -1e300, 1e39, np.inf, np.nan, 1e-320])
    return X


def _constant(rng: Rng) -> Any:
    return np.full(_shaped(rng).shape, float(rng.choice([0.0, 1.0, 1e9])))


def _whole(rng: Rng) -> Any:
    return (_shaped(rng) * 100).astype(rng.choice(["int8", "int64", "uint16", "bool", "float32"]))


def _swapped(rng: Rng) -> Any:
    return np.asfortranarray(_shaped(rng).swapaxes(0, 2))[::-1]


def _nonsense(rng: Rng) -> Any:
    choices: list[Any] = [
        *(None, 3, "series", [], [[]], {}, np.zeros(3), np.zeros((0, 1, 3)), np.zeros((2, 0, 3))),
        *(np.zeros((2, 1, 0)), np.zeros((2, 2, 2, 2)), [["a", "b"], ["c", "d"]], object()),
        *(np.array([[1 + 2j, 3]]), [np.zeros(3), np.zeros((2, 3))], [None, None], np.array("x")),
        *(
            np.array([[1, None, 2]], object),
            torch.zeros(2, 1, 9),
        ),
        *([[1.0, 2.0], "b"], np.array([["2020-01-01", "2020-01-02"]], "M8[D]"), [[10**400, 1]]),
    ]
    return choices[int(rng.integers(len(choices)))]


def _container(rng: Rng) -> Any:
    """Series in a container of another package, a few of which nobody should pass."""
    X = [_with_gaps, _one_cell, _whole][int(rng.integers(3))](rng)
    one = X[:, 0]
    rows = {"id": np.repeat(np.arange(len(one)), one.shape[1]), "x": one.ravel()}
    rows["t"] = np.tile(np.arange(one.shape[1]), len(one))
    cells = [list(row) for row in one]
    nested: dict[str, list[Any]] = {"id": [f"s{i}" for i in range(len(one))], "x": cells}
    long = pd.DataFrame(rows)
    kinds: list[Callable[[], Any]] = [
        lambda: torch.from_numpy(np.ascontiguousarray(X)),
        lambda: [torch.from_numpy(np.ascontiguousarray(row)) for row in X],
        lambda: pd.DataFrame(one, index=[f"s{i}" for i in range(len(one))]),
        lambda: long,
        lambda: long.sample(frac=1.0, random_state=0),
        lambda: pd.concat([long, long.iloc[:2]]),
        lambda: long.set_index(["id", "t"]),
        lambda: long.set_index(["id", "t", "x"]),
        lambda: long.assign(x=long.x.astype("Float64").where(long.x > 0)),
        lambda: pd.DataFrame(nested),
        lambda: pd.DataFrame(nested | {"x": [None, *cells[1:]]}),
        lambda: pd.DataFrame({"x": ["a", "b"], "y": [1, 2]}),
        lambda: [pd.DataFrame(row) for row in X],
    ]
    if find_spec("polars"):
        import polars

        kinds += [
            lambda: polars.DataFrame(rows),
            lambda: polars.DataFrame(nested).lazy(),
            lambda: polars.Series([list(row) for row in one]),
        ]
    if find_spec("pyarrow"):
        import pyarrow

        kinds += [lambda: pyarrow.table(nested), lambda: pyarrow.table(rows).to_batches()[0]]
    if find_spec("datasets") and rng.random() < 0.2:  # takes seconds to import
        import datasets as hugging

        kinds = [
            lambda: hugging.Dataset.from_dict(nested),
            lambda: hugging.Dataset.from_dict(rows),
            lambda: hugging.DatasetDict({"train": hugging.Dataset.from_dict(nested)}),
            lambda: hugging.Dataset.from_dict(nested).to_iterable_dataset(),
        ]
    return kinds[int(rng.integers(len(kinds)))]()


KINDS: list[Callable[[Rng], Any]] = [
    *(_shaped, _ragged, _with_gaps, _scaled, _one_cell, _constant, _whole, _swapped, _nonsense),
    _container,
]


def _series(rng: Rng) -> Any:
    return KINDS[int(rng.integers(len(KINDS)))](rng)


def _n_series(X: Any) -> int:
    """How many there are; of a container, that is not its length."""
    try:
        return len(check_series(X))
    except Exception:  # it will be refused
        return 3


def _labels(rng: Rng, X: Any) -> Any:
    n = _n_series(X)
    kinds: list[Any] = [
        *(None, rng.integers(0, 2, n), rng.integers(-1, 3, n), rng.integers(0, 2, n + 1)),
        *(np.zeros(n, int), np.full(n, -1), rng.normal(size=n)),
        np.array(["a", "b", ""])[rng.integers(0, 3, n)],
    ]
    return kinds[int(rng.integers(len(kinds)))]


def _numbers(found: Any, what: str, missing: bool = False) -> None:
    array = np.asarray(found, dtype=float)
    bad = np.isinf(array) if missing else ~np.isfinite(array)
    if bad.any() or (missing and array.size and np.isnan(array).all()):
        raise WrongError(f"{what}: {int(bad.sum())} of {array.size} are no numbers")


@cache
def _known(name: str) -> frozenset[str]:
    return frozenset(methods[name]._get_param_names())


def _small(name: str, rng: Rng) -> dict[str, Any]:
    """Parameters of a small method, one of which may be anything."""
    own = {key: value for key, value in (_SIZES | _FEW).items() if key in _known(name)}
    own |= {"random_state": 0, "device": "cpu"}
    if rng.random() < 0.25:
        key = str(rng.choice(sorted(_known(name) - {"device", "encoder", "progress"})))
        odd: list[Any] = [None, -1, 0, 0.5, "no", float("nan"), float("inf"), [], {}, True, 1e9]
        own[key] = odd[int(rng.integers(len(odd)))]
        if own[key] == 1e9 and key not in ("lr", "alpha", "tau_instance", "tau_temporal"):
            own[key] = 3
    return own


def _method(name: str, rng: Rng) -> None:
    X = _series(rng)
    model = methods[name](**_small(name, rng)).fit(X)
    R = model.transform(X)
    if R.ndim != 2 or len(R) != _n_series(X):
        raise WrongError(f"embeddings of shape {R.shape} of {_n_series(X)} series")
    _numbers(R, "embeddings")


def _distance(name: str, rng: Rng) -> None:
    X, options = _series(rng), {}
    if rng.random() < 0.3:
        options["window"] = rng.choice([0.0, 0.1, 1.0, -1.0, 7.0, np.nan])
    if rng.random() < 0.3:
        options["normalize"] = str(rng.choice(["minmax", "max", "column", "local", "none"]))
    D = pairwise_distance(X, metric=name, n_jobs=1, **options)
    if D.shape != (_n_series(X), _n_series(X)):
        raise WrongError(f"distances of shape {D.shape} between {_n_series(X)} series")
    _numbers(D, "distances")
    if (D < 0).any() or (options.get("normalize") != "column" and not np.allclose(D, D.T)):
        raise WrongError("distances that are negative, or other ones there and back")


def _assignment(name: str, rng: Rng) -> None:
    odd = [1.0, 5.0, 1e30, 0.0, -1.0, None, float("nan")]
    tau, sharp = (odd[int(i)] for i in rng.integers(0, len(odd), 2))
    loss = softclt.SoftContrastiveLoss(
        tau_instance=tau, tau_temporal=sharp, instance_assignment=name, temporal_assignment=name
    )
    n, t = int(rng.integers(1, 5)), int(rng.choice([1, 2, 7, 16]))
    z = [torch.as_tensor(rng.normal(size=(n, t, 3)) * 10.0 ** rng.integers(-3, 4)) for _ in "ab"]
    D = torch.as_tensor(rng.random((n, n)))
    found = loss(*z, distances=D if rng.random() < 0.9 else None)
    _numbers(found, "the loss")


def _probe(name: str, rng: Rng) -> None:
    R = np.asarray(_shaped(rng)[:, 0])
    y = _labels(rng, R)
    y = rng.integers(0, 3, len(R)) if y is None else y  # whoever has no labels asks for no probe
    found = probes[name](R, y).predict(R)
    if len(found) != len(R):
        raise WrongError(f"{len(found)} predictions for {len(R)} series")


def _criterion(name: str, rng: Rng) -> None:
    R = _shaped(rng)[:, 0]
    D = pairwise_distance(R[:, None], metric="euclidean", n_jobs=1)
    found = embedding_score(name, R, _labels(rng, R), distances=D, others=[R + 1, -R])
    if not isinstance(found, float) or np.isinf(found):
        raise WrongError(f"the score {found!r}")


def _detector(name: str, rng: Rng, threshold: str = "sigma") -> None:
    long = rng.random() < 0.6  # most short series are refused
    X = np.cumsum(rng.normal(size=(2, 1, int(rng.integers(60, 300)))), -1) if long else _series(rng)
    if long and rng.random() < 0.5:
        X[rng.random(X.shape) < 0.05] = np.nan
    own: dict[str, Any] = {"context": int(rng.integers(1, 40)), "random_state": 0}
    model = methods["ts2vec"](**_small("ts2vec", _plain()))
    detector = AnomalyDetector(model, scorer=name, threshold=threshold, **own).fit(X)
    _numbers(detector.anomaly_scores(X), "scores", missing=True)
    detector.alarms(X)


def _plain() -> Rng:
    """What draws no strange parameter."""
    return np.random.default_rng(1)


def _threshold(name: str, rng: Rng) -> None:
    _detector(str(rng.choice(["sr", "fft", "luminol"])), rng, name)


def _forecaster(name: str, rng: Rng) -> None:
    long = rng.random() < 0.7
    X = np.cumsum(rng.normal(size=(2, 2, int(rng.integers(60, 300)))), -1) if long else _series(rng)
    own: dict[str, Any] = {"horizon": int(rng.choice([1, 5, 24])), "random_state": 0}
    own |= {"context": int(rng.choice([1, 10, 50])), "lags": int(rng.choice([0, 5, 30]))}
    if rng.random() < 0.3:
        own["coverage"] = float(rng.choice([0.5, 0.99, 0.0, 1.0, np.nan]))
    model = Forecaster(methods[name](**_small(name, _plain())), **own).fit(X)
    _numbers(model.predict(), "forecasts")
    low, high = model.predict_interval()
    if (low > high).any():
        raise WrongError("an interval whose lower end is above its upper one")


def _classifier(name: str, rng: Rng) -> None:
    X = _series(rng)
    own = {key: value for key, value in _small(name, rng).items() if key != "random_state"}
    own.pop("device")
    model = SemiSupervisedClassifier(name, method_params=own, random_state=0, device="cpu")
    P = model.fit(X, _labels(rng, X)).predict_proba(X)
    _numbers(P, "probabilities")
    if not np.allclose(P.sum(axis=1), 1, atol=1e-5):
        raise WrongError("probabilities that do not sum to 1")


def _block(name: str, rng: Rng) -> None:
    X = _series(rng)
    own: dict[str, Any] = {"random_state": 0, "device": "cpu", "features": (name,)}
    if rng.random() < 0.2:
        own["features"] = ("base", name)
    if rng.random() < 0.3:
        odd: list[Any] = ["balanced", {0: 2.0}, {"a": 1}, {0: -1}, {0: float("nan")}, "no", 3, {}]
        own["class_weight"] = odd[int(rng.integers(len(odd)))]
    if name in ("ts2vec", "adapted"):  # which train for minutes
        X = X[:3] if isinstance(X, np.ndarray) else _shaped(rng)
    model = SeriesClassifier(**own).fit(X, _labels(rng, X))
    new = X if rng.random() < 0.5 else _series(rng)
    P = model.predict_proba(new)
    _numbers(P, "probabilities")
    if P.shape != (_n_series(new), len(model.classes_)) or not np.allclose(P.sum(axis=1), 1):
        raise WrongError("probabilities that do not sum to 1, or of other series")
    if not 0 <= model.loo_accuracy_ <= 1 and not np.isnan(model.loo_accuracy_):
        raise WrongError(f"an accuracy of {model.loo_accuracy_}")


def _pretrained(name: str, rng: Rng) -> None:
    X, own = _series(rng), {}
    if rng.random() < 0.5:
        own["readout"] = str(rng.choice(["rich", "compact", "rich", "no"]))
    if rng.random() < 0.3:
        own["channels"] = str(rng.choice(["mean", "concat", "sum"]))
    R = load_pretrained(name, device="cpu", **own).transform(X)
    if len(R) != _n_series(X):
        raise WrongError(f"{len(R)} embeddings of {_n_series(X)} series")
    _numbers(R, "embeddings")


def _figure(name: str, rng: Rng) -> None:
    X = _series(rng)
    data = Dataset(X, _labels(rng, X), meta={"name": "a $x_$", "archive": "b"})
    model = methods["ts2vec"](**_small("ts2vec", _plain()))
    with tempfile.TemporaryDirectory() as folder:
        for _, picture in draw([name], data, model):
            picture.figure.savefig(f"{folder}/a.png", dpi=20)


def _archive(name: str, rng: Rng) -> None:
    files = {"HAR.npz", "Epilepsy.npz", "KPI.npz", "ETTh1.csv", "electricity.csv", "WTH.csv"}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for file in files:
            if file.endswith(".npz"):
                np.savez(folder / file, X=_shaped(rng), y=rng.integers(0, 2, 3))
            else:
                np.savetxt(folder / file, _shaped(rng)[0], delimiter=",")
            if rng.random() < 0.3:
                os.truncate(folder / file, int(rng.integers(0, 60)))
        found = archives[name](folder)
        if found:
            own = sorted(found)
            found[own[int(rng.integers(len(own)))]]()


def _rule(name: str, rng: Rng) -> None:
    sets = []
    for i in range(int(rng.integers(0, 4))):
        X = np.asarray(_shaped(rng))
        sets.append(facts_of(f"a{i}", Dataset(X, np.zeros(len(X), int), meta={"name": f"a{i}"})))
    own = {"n": int(rng.integers(0, 5))} if name == "smallest" else {}
    if rng.random() < 0.5:
        own["max_length"] = int(rng.choice([0, 9, 10**9]))
    if not set(rules[name](sets, **own)) <= {one.asked for one in sets}:
        raise WrongError("sets that were not given")


def _task(name: str, rng: Rng) -> None:
    X = _series(rng)
    try:
        data: Any = Dataset(X, _labels(rng, X), X, _labels(rng, X), {"name": "a", "archive": "b"})
    except Exception:
        if rng.random() < 0.5:
            raise
        data = "synthetic/waves"
    model = methods["ts2vec"](**_small("ts2vec", rng))
    result = softclt.evaluate(name, model, data, seed=0)
    if not result.metrics:
        raise WrongError("a result without metrics")


def _dataset(name: str, rng: Rng) -> None:
    data = softclt.load(name)
    _numbers(np.nan_to_num(data.X_train), "values")


def _schedule(name: str, rng: Rng) -> None:
    own = _small("ts2vec", _plain()) | {"max_iter": int(rng.integers(0, 5)), "lr_schedule": name}
    own["lr"] = float(rng.choice([1e-3, 1.0, 1e-30]))
    model = methods["ts2vec"](**own).fit(_shaped(rng))
    _numbers(model.history_["loss"], "losses")


def _group(name: str, rng: Rng) -> None:
    X = np.asarray(_shaped(rng))
    data = Dataset(X, np.zeros(len(X), int), X, np.zeros(len(X), int), {"name": "a"})
    if not isinstance(groups[name](data), str):
        raise WrongError("a group that is no text")


Doors = list[tuple[str, str, Callable[[str, Rng], None]]]


@cache
def doors() -> Doors:
    """Everything that is registered, with what tries it; what takes series counts more."""
    own: list[tuple[Any, Callable[[str, Rng], None], int]] = [
        *((methods, _method, 3), (distances, _distance, 4), (assignments, _assignment, 3)),
        *((probes, _probe, 3), (criteria, _criterion, 2), (scorers, _detector, 3)),
        *((thresholds, _threshold, 3), (tasks, _task, 3), (datasets, _dataset, 1)),
        *((schedules, _schedule, 1), (groups, _group, 1), (blocks, _block, 3)),
        *((figures, _figure, 1), (archives, _archive, 2), (rules, _rule, 1)),
    ]
    found = [
        (registry.kind, name, run)
        for registry, run, times in own
        for name in registry.names()
        if name != "corpus"
        for _ in range(times)
    ]
    found += [("forecaster on", name, _forecaster) for name in ("ts2vec", "cost") for _ in range(3)]
    found += [("pre-trained", name, _pretrained) for name in pretrained_names()]
    found += [("classifier on", name, _classifier) for name in ("ts2vec", "tstcc", "catcc")]
    return found


def api_case(seed: int, number: int, folder: Path) -> str:
    """A call of something that is registered."""
    rng = np.random.default_rng([seed, 2, number])
    kind, name, run = doors()[number % len(doors())]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            run(name, rng)
        except WrongError as error:
            raise WrongError(f"{kind} {name}: {error}") from None
    return RIGHT
