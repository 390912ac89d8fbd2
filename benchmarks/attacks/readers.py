"""Files of every form, damaged in every way: read as what they say, or refused in words."""

import gzip
import json
import re
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from attacks.cases import RIGHT, WrongError
from softclt import (
    SemiSupervisedClassifier,
    SeriesClassifier,
    TS2Vec,
    load_model,
    pairwise_distance,
)
from softclt.bench.suites import read_suite
from softclt.data import read_series
from softclt.data.corpus import read_corpus
from softclt.data.label_tables import labels_by_id
from softclt.data.torchfile import read_torch_arrays
from softclt.distances import DistanceStore, open_store
from softclt.export import OnnxModel, export_onnx
from softclt.export.checksum import sealed
from softclt.tasks import read_results
from softclt.tasks.result import Result

SMALL: dict[str, Any] = {"output_dims": 4, "hidden_dims": 4, "depth": 1, "device": "cpu"}
RNG = np.random.default_rng

Form = tuple[Callable[[Path], Path], Callable[[Path], None]]  # writes a sound file, reads it


@cache
def series() -> Any:
    """Four series of two channels."""
    return RNG(0).normal(size=(4, 2, 12)).round(3)


def _long() -> pd.DataFrame:
    times = pd.date_range("2024-01-01", periods=12, freq="D").astype(str)
    rows = [
        {"id": f"s{i}", "time": times[t], "x": series()[i, 0, t], "y": series()[i, 1, t]}
        for i in range(4)
        for t in range(12)
    ]
    return pd.DataFrame(rows)


def _text(name: str, text: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_text(text)
        return folder / name

    return write


def _wide_csv(folder: Path) -> Path:
    frame = pd.DataFrame(series()[:, 0], columns=[f"t{i}" for i in range(12)])
    frame.insert(0, "id", [f"s{i}" for i in range(4)])
    frame.to_csv(folder / "a.csv", index=False)
    return folder / "a.csv"


def _long_csv(folder: Path) -> Path:
    _long().to_csv(folder / "a.csv", index=False)
    return folder / "a.csv"


def _packed_csv(folder: Path) -> Path:
    (folder / "a.csv.gz").write_bytes(gzip.compress(_long_csv(folder).read_bytes()))
    return folder / "a.csv.gz"


def _parquet(folder: Path) -> Path:
    _long().to_parquet(folder / "a.parquet")
    return folder / "a.parquet"


def _npz(folder: Path) -> Path:
    np.savez_compressed(folder / "a.npz", X=series(), y=[0, 1, 0, 1], ids=["a", "b", "c", "d"])
    return folder / "a.npz"


def _npy(folder: Path) -> Path:
    np.save(folder / "a.npy", series())
    return folder / "a.npy"


def _torch(folder: Path) -> Path:
    torch.save({"samples": torch.tensor(series()), "labels": torch.zeros(4)}, folder / "a.pt")
    return folder / "a.pt"


def _rows(i: int) -> list[str]:
    return [",".join(map(str, channel)) for channel in series()[i]]


TS = "@problemName a\n@timeStamps false\n@univariate false\n@dimension 2\n@equalLength true\n"
TS += "@seriesLength 12\n@classLabel true a b\n@data\n"
TS += "".join(":".join([*_rows(i), "ab"[i % 2]]) + "\n" for i in range(4))
TSV = "".join("\t".join([str(i % 2), *map(str, series()[i, 0])]) + "\n" for i in range(4))
ARFF = "@relation a\n" + "".join(f"@attribute t{t} numeric\n" for t in range(12))
ARFF += "@attribute target {0,1}\n@data\n"
ARFF += "".join(",".join([*map(str, series()[i, 0]), str(i % 2)]) + "\n" for i in range(4))
SUITE = """[mine]
about = "one"
data = ["synthetic/waves"]
seeds = 2
groups = ["length"]
[mine.configurations.hard]
params = { tau_instance = "none", max_iter = 1 }
[mine.configurations.soft]
control = "hard"
grid = { tau_instance = [5.0, 20.0], alpha = [0.5] }
select = ["train"]
"""
CORPUS = """[[sets]]
data = ["synthetic/waves"]
[synthetic]
count = 4
seed = 0
siblings = 2
share = 0.5
"""
LABELS = "id,label\ns0,a\ns1,b\ns2,\n"


def _results(folder: Path) -> Path:
    result = Result(
        task="classification",
        dataset="a",
        fingerprint="0",
        method="ts2vec",
        params={"tau_instance": 5.0},
        tau_choice="fixed",
        seed=0,
        metrics={"accuracy": 0.5},
        seconds={"fit": 1.0},
        versions={"softclt": "0"},
        groups={"length": "short"},
    )
    for _ in range(3):
        result.append_to(folder / "a.jsonl")
    return folder / "a.jsonl"


def _model(folder: Path) -> Path:
    TS2Vec(**SMALL, max_iter=0, random_state=0).fit(series()).save(folder / "model")
    return folder / "model"


def _classifier(folder: Path) -> Path:
    _fitted_classifier().save(folder / "classifier")
    return folder / "classifier"


@cache
def _fitted_classifier() -> SemiSupervisedClassifier:
    model = SemiSupervisedClassifier(method_params=SMALL | {"max_iter": 0}, random_state=0)
    return model.fit(series(), [0, 1, 0, 1])


def _by_series(folder: Path) -> Path:
    shutil.copytree(_fitted_by_series(), folder / "by-series")
    return folder / "by-series"


@cache
def _fitted_by_series() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="attack-")) / "model"
    SeriesClassifier(features=("base",), device="cpu").fit(series(), [0, 1, 0, 1]).save(folder)
    return folder


def _onnx(folder: Path) -> Path:
    (folder / "a.onnx").write_bytes(_exported())
    return folder / "a.onnx"


@cache
def _exported() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.onnx"
        export_onnx(TS2Vec(**SMALL, max_iter=0, random_state=0).fit(series()), path)
        return path.read_bytes()


def _store(folder: Path) -> Path:
    DistanceStore.create(folder / "store", series(), metric="euclidean").fill(n_jobs=1)
    return folder / "store"


def _read_series(path: Path) -> None:
    X = np.asarray(read_series(path).X)
    if X.ndim != 3 or X.size == 0 or X.dtype.kind != "f" or np.isinf(X).any():
        raise WrongError(f"series of shape {X.shape} and type {X.dtype}")


def _read_torch(path: Path) -> None:
    if not all(isinstance(value, np.ndarray) for value in read_torch_arrays(path).values()):
        raise WrongError("something else than arrays")


def _read_suite(path: Path) -> None:
    if not read_suite(str(path)).rows:
        raise WrongError("a suite without rows")


def _read_corpus(path: Path) -> None:
    if not np.isfinite(read_corpus(path).values).any():
        raise WrongError("a corpus without values")


def _read_labels(path: Path) -> None:
    labels_by_id(path, ["s0", "s1", "s2", "s3"])


def _read_results(path: Path) -> None:
    if not all(isinstance(result.metrics, dict) for result in read_results(path)):
        raise WrongError("results without metrics")


#: What comes out of what holds a model, by its form.
ANSWERS: dict[str, Callable[[Path], Any]] = {
    "model folder": lambda path: load_model(path).transform(series()),
    "classifier folder": lambda path: SemiSupervisedClassifier.load(path).predict_proba(series()),
    "series classifier folder": lambda path: SeriesClassifier.load(path).predict_proba(series()),
    "onnx file": lambda path: OnnxModel(path, n_threads=1).transform(series()),
}


@cache
def _expected(form: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return ANSWERS[form](FORMS[form][0](Path(folder)))


def _read_answer(form: str) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        if not np.isfinite(ANSWERS[form](path)).all():
            raise WrongError("answers that are no numbers")

    return read


def _read_store(path: Path) -> None:
    found = np.asarray(open_store(path))
    if not np.allclose(found, pairwise_distance(series(), metric="euclidean"), atol=1e-5):
        raise WrongError("other distances than those that were kept")


FORMS: dict[str, Form] = {
    "wide csv": (_wide_csv, _read_series),
    "long csv": (_long_csv, _read_series),
    "csv.gz": (_packed_csv, _read_series),
    "parquet": (_parquet, _read_series),
    "npz": (_npz, _read_series),
    "npy": (_npy, _read_series),
    "ts": (_text("a.ts", TS), _read_series),
    "tsv": (_text("a.tsv", TSV), _read_series),
    "arff": (_text("a.arff", ARFF), _read_series),
    "torch": (_torch, _read_torch),
    "results": (_results, _read_results),
    "suite": (_text("a.toml", SUITE), _read_suite),
    "corpus": (_text("a.toml", CORPUS), _read_corpus),
    "labels": (_text("labels.csv", LABELS), _read_labels),
    "model folder": (_model, _read_answer("model folder")),
    "classifier folder": (_classifier, _read_answer("classifier folder")),
    "series classifier folder": (_by_series, _read_answer("series classifier folder")),
    "onnx file": (_onnx, _read_answer("onnx file")),
    "store of distances": (_store, _read_store),
}

_TOKENS = [
    *(b"NaN", b"-NaN", b"inf", b"-1", b"0", b"1e308", b"1e999", b"9" * 400, b"", b"\xff", b"[]"),
    *(b"null", b"true", b"{}", b'""', b"1_000_000_000", b"9999-12-31", b"=cmd|' /C calc'!A0"),
    *("\u0661\u202e".encode(), b"$x_$", b"\x00", b"\r", b'"', b"@data", b"../../etc/passwd"),
]


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """One to three random changes."""
    for _ in range(rng.integers(1, 4)):
        n = max(1, len(data))
        a, b = sorted(rng.integers(0, n, 2).tolist())
        kind = rng.integers(0, 9)
        if kind == 0:
            data = data[:a]
        elif kind == 1:
            flipped = bytearray(data)
            for place in rng.integers(0, n, rng.integers(1, 9)).tolist():
                if place < len(flipped):
                    flipped[place] ^= 1 << int(rng.integers(0, 8))
            data = bytes(flipped)
        elif kind == 2:
            data = data[:a] + data[min(b, a + 40) :]
        elif kind == 3:
            data = data[:b] + data[a:b] * int(rng.integers(1, 4)) + data[b:]
        elif kind == 4:
            data = data[:a] + rng.bytes(int(rng.integers(1, 30))) + data[a:]
        elif kind == 5:
            data = data[:a] + bytes(min(b - a, 60)) + data[min(b, a + 60) :]
        elif kind == 6:
            lines = data.split(b"\n")
            data = b"\n".join(lines[i] for i in rng.permutation(len(lines)))
        else:  # a word or number becomes another one
            words = list(re.finditer(rb"[\w.+-]+", data))
            if words:
                word = words[int(rng.integers(len(words)))]
                token = _TOKENS[int(rng.integers(len(_TOKENS)))]
                data = data[: word.start()] + token + data[word.end() :]
    return data


def refit_checksums(folder: Path) -> None:
    """Let a changed description and its files agree again: what an attacker would do."""
    import hashlib

    for config in folder.rglob("config.json"):
        try:
            table = json.loads(config.read_text())
            for key, name in (("sha256", "model.safetensors"), ("history_sha256", "history.jsonl")):
                if isinstance(table, dict) and (config.parent / name).is_file():
                    digest = hashlib.sha256((config.parent / name).read_bytes()).hexdigest()
                    table[key] = digest
            config.write_text(json.dumps(table))
        except (ValueError, RecursionError):
            continue


def seal_again(path: Path) -> None:
    """Give a changed ONNX file a checksum that fits."""
    with suppress(ValueError):  # there is no place for it any more
        path.write_bytes(sealed(path.read_bytes()))


def reader_case(seed: int, number: int, folder: Path) -> str:
    """Damage a file of a form, and read it."""
    rng = RNG([seed, 1, number])
    name = list(FORMS)[number % len(FORMS)]
    write, read = FORMS[name]
    path = write(folder)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        target = files[int(rng.integers(len(files)))]
    else:
        target = path
    target.write_bytes(damaged(target.read_bytes(), rng))
    forged = name in ANSWERS and rng.random() < 0.5
    if forged and path.is_dir():
        refit_checksums(path)
    elif forged:
        seal_again(path)
    read(path)
    sure = name in ANSWERS and not forged and target.name != "config.json"
    if sure and not np.allclose(ANSWERS[name](path), _expected(name), atol=1e-6):
        raise WrongError(f"a damaged {target.name} was read as something else")
    shutil.rmtree(folder, ignore_errors=True)
    return RIGHT
