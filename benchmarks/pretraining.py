"""Which way of pre-training makes the better encoder? Chosen without any test series.

    python benchmarks/pretraining.py prepare folder/
    python benchmarks/pretraining.py screen folder/ --seconds 30 --out screen.jsonl

Data sets of the families that choose (``chooses`` in bench/families.toml) are read by their
training parts alone, at most 400 series of each. Every second of these families is left out of the
corpus, so that an encoder is asked about series whose relatives it has seen, and about others. A
line for each variant: leave-one-out accuracy of a ridge on the rich read-out, cross-validated
accuracy of an SVM on the compact one, averaged over families. All variants take as many steps as
the first one does in the given time.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import SVC

from softclt.bench.families import families
from softclt.data import load, read_corpus, write_corpus
from softclt.data.corpus import find_corpus, gather
from softclt.methods import SeriesContrast
from softclt.methods.pretrained import level_and_scale
from softclt.probes.leave_one_out import leave_one_out

VARIANTS: dict[str, dict[str, Any]] = {
    "soft": {},
    "hard": {"tau_instance": None, "neighbours": 0},
    "hard, neighbours": {"tau_instance": None},
    "narrow": {"width": 40},
    "no siblings": {"siblings": 1},
    "half synthetic": {"share": 0.5},
    "synthetic alone": {"share": 1.0},
    "warm": {"temperature": 0.2},
    "softer": {"alpha": 1.0},
    "short cuts": {"least_cut": 0.3},
    "one length": {"least_length": 512},
    "small batch": {"batch_size": 256},
}
_BEGIN = {"batch_size": 512, "width": 64, "precision": "bfloat16", "random_state": 0}
_SYNTHETIC = {"count": 40_000, "seed": 0, "share": 0.25, "siblings": 4}
_POOLING = "max+mean+positive"
_LENGTHS = 512, 256, 128
_MOST = 400
_Set = dict[str, Any]


def main() -> None:
    """Run the command that is asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["prepare", "screen"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--steps", type=int, help="Instead of seconds.")
    parser.add_argument("--out", type=Path, default=Path("screen.jsonl"))
    parser.add_argument("--variants", nargs="*", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--weights", type=Path, help="Folder that keeps the encoders.")
    options = parser.parse_args()
    if options.command == "prepare":
        prepare(options.folder)
    else:
        screen(options)


def left_out() -> list[str]:
    """Families that choose and are in no corpus here."""
    return sorted(families()["chooses"])[1::2]


def prepare(folder: Path) -> None:
    """Write the corpus and the labelled training series that choose."""
    table = families()
    unseen = [name for own in left_out() for name in table["families"][own]]
    folder.mkdir(parents=True, exist_ok=True)
    lines = find_corpus("base").read_text(encoding="utf-8").split("except = [")
    assert len(lines) == 2
    but = "except = [\n" + "".join(f'    "{name}",\n' for name in unseen)
    (folder / "corpus.toml").write_text(lines[0] + but + lines[1], encoding="utf-8")
    print(write_corpus(folder / "corpus.toml", folder / "corpus.npz"), "series in the corpus")
    arrays: dict[str, NDArray[Any]] = {}
    for family in table["chooses"]:
        for name in table["families"][family]:
            data = load(name, split="train")
            X, y = data.X_train, np.asarray(data.y_train)
            rows = np.random.default_rng(0).permutation(len(X))[:_MOST]
            rows = np.sort(rows[np.bincount(y[rows])[y[rows]] > 1])
            arrays |= {f"{family}|{name}|X": X[rows].astype(np.float32)}
            arrays |= {f"{family}|{name}|y": y[rows]}
    np.savez_compressed(folder / "labelled.npz", **arrays)  # type: ignore[arg-type]


def labelled(folder: Path) -> list[_Set]:
    """The data sets that choose."""
    unseen = left_out()
    with np.load(folder / "labelled.npz") as file:
        names = [name[:-2] for name in file if name.endswith("|X")]
        return [
            {
                "family": name.split("|")[0],
                "name": name.split("|")[1],
                "seen": name.split("|")[0] not in unseen,
                "X": file[f"{name}|X"],
                "y": file[f"{name}|y"],
            }
            for name in names
        ]


def screen(options: argparse.Namespace) -> None:
    """Train every variant, and say what its embeddings are worth."""
    sets, steps = labelled(options.folder), options.steps
    waiting: list[tuple[dict[str, Any], list[Future[Any]]]] = []
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        for name in options.variants:
            own = _BEGIN | VARIANTS[name]
            made = _SYNTHETIC | {key: own.pop(key) for key in list(own) if key in _SYNTHETIC}
            start = time.perf_counter()
            corpus = _corpus(options.folder, made)
            if steps is None:
                steps = _steps_in(options.seconds, corpus, own)
            model = SeriesContrast(max_iter=steps, **own).fit(corpus)
            line = {
                "variant": name,
                "steps": steps,
                "training": round(model.history_["seconds"]["training"], 1),
                "distances": round(model.history_["seconds"]["distances"], 1),
                "loss": float(np.mean(model.history_["loss"][-100:])),
            }
            if options.weights is not None:
                model.save(options.weights / name.replace(", ", "-").replace(" ", "-"))
            waiting.append((line, [pool.submit(_score, one, *_read(model, one)) for one in sets]))
            line["all"] = round(time.perf_counter() - start, 1)
            print(json.dumps(line), flush=True)
        for line, futures in waiting:
            scores = [future.result() for future in futures]
            line |= _means(scores) | {"sets": scores}
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
            print(json.dumps({key: value for key, value in line.items() if key != "sets"}))


def _corpus(folder: Path, made: Mapping[str, Any]) -> Any:
    """The corpus with other synthetic series than its file asks for."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if made["share"] == 1:
        alone = {key: value for key, value in made.items() if key != "share"}
        return gather({"length": _LENGTHS[0], "synthetic": alone}, device)
    return read_corpus(folder / "corpus.npz", device, synthetic=made)


def _steps_in(seconds: float, corpus: Any, own: Mapping[str, Any]) -> int:
    """Steps that take a time: from a short run, whose first steps compile."""
    seen: list[tuple[int, float]] = []

    def watch(told: Any) -> None:
        seen.append((told.step, time.perf_counter()))

    SeriesContrast(max_iter=400, **own).fit(corpus, callbacks=[watch])
    (first, before), (last, after) = seen[1], seen[-1]
    print(json.dumps({"seconds_a_step": (after - before) / (last - first)}), flush=True)
    return int(seconds * (last - first) / (after - before))


def _read(model: SeriesContrast, one: _Set) -> tuple[NDArray[Any], NDArray[Any]]:
    """Compact and rich read-outs of the series of a set."""
    X, rich, compact = one["X"], [level_and_scale(one["X"]).reshape(len(one["X"]), -1)], None
    for length in _LENGTHS:
        model.length = length
        model.n_features_in_ = X.shape[1]
        found = model.read_outs(X, [("max+mean", "last"), (_POOLING, "all")])
        compact = found["max+mean", "last"] if compact is None else compact
        rich.append(found[_POOLING, "all"])
    model.length, model.n_features_in_ = _LENGTHS[0], 1
    assert compact is not None
    return compact, np.concatenate(rich, axis=1)


def _score(one: _Set, compact: NDArray[Any], rich: NDArray[Any]) -> dict[str, Any]:
    """What a ridge and an SVM make of a set, in per cent."""
    torch.set_num_threads(1)
    y = one["y"]
    targets = np.eye(y.max() + 1)[y]
    ridge = (leave_one_out(rich, targets).argmax(axis=1) == y).mean()
    n_folds = max(2, min(5, int(np.bincount(y)[y].min())))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    svm = max(cross_val_score(SVC(C=C), compact, y, cv=folds).mean() for C in (1.0, 10.0, 100.0))
    facts = {key: one[key] for key in ("family", "name", "seen")}
    return facts | {"ridge": 100 * float(ridge), "svm": 100 * float(svm)}


def _means(scores: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Over families of either kind."""
    means = {}
    for seen in (True, False):
        for what in ("svm", "ridge"):
            of_families: dict[str, list[float]] = {}
            for one in scores:
                if one["seen"] == seen:
                    of_families.setdefault(one["family"], []).append(one[what])
            mean = np.mean([np.mean(own) for own in of_families.values()])
            means[f"{what}_{'seen' if seen else 'left_out'}"] = round(float(mean), 2)
    return means


if __name__ == "__main__":
    main()
