"""Model folders that somebody else made: refused in words and at once, whatever they ask for."""

import hashlib
import json
import shutil
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save

from softclt import SemiSupervisedClassifier, SeriesClassifier, load_model
from softclt.persistence import ModelFileError

BEFORE = Path(__file__).parents[1] / "files" / "before"
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.fixture
def folder(tmp_path):
    return Path(shutil.copytree(BEFORE / "ts2vec", tmp_path / "model"))


@pytest.fixture(scope="module", autouse=True)
def loaded_before():
    """What torch imports with the first network takes seconds, which no folder is to blame for."""
    load_model(BEFORE / "ts2vec")


def edit(folder, change):
    """Change the description in place by a function of it."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))


def set_at(*way):
    """A change that puts the last of ``way`` where the rest of it leads."""
    *keys, last, value = way

    def change(config):
        for key in keys:
            config = config[key]
        config[last] = value

    return change


def rewrite_weights(folder, change):
    """Change the tensors, with a checksum that fits."""
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    data = save(tensors)
    (folder / "model.safetensors").write_bytes(data)
    edit(folder, set_at("sha256", hashlib.sha256(data).hexdigest()))


HUGE = [
    {"hidden_dims": 100_000},
    {"hidden_dims": 10**30},
    {"output_dims": 10**12},
    {"depth": 10**9},
    {"depth": 60},
    {"hidden_dims": 100_000, "depth": 62},
]


@pytest.mark.parametrize("params", HUGE, ids=str)
def test_a_network_that_the_weights_do_not_fill_is_refused_before_it_is_made(folder, params):
    edit(folder, lambda config: config["params"].update(params))
    tracemalloc.start()
    began = time.perf_counter()
    with pytest.raises(ModelFileError, match="does not fit"):
        load_model(folder)
    seconds, (_, peak) = time.perf_counter() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert seconds < 2
    assert peak < 50e6


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("cost", {"max_train_length": 10**12}),
        ("cost", {"kernel_sizes": [10**9]}),
        ("cost", {"queue_size": 10**12}),
        ("tstcc", {"timesteps": 10**12}),
        ("tstcc", {"widths": [4] * 100_000}),
    ],
)
def test_so_are_networks_of_other_methods(tmp_path, name, params):
    folder = Path(shutil.copytree(BEFORE / name, tmp_path / "model"))
    edit(folder, lambda config: config["params"].update(params))
    began = time.perf_counter()
    with pytest.raises(ModelFileError, match="does not fit"):
        load_model(folder)
    assert time.perf_counter() - began < 2


WRONG = {
    "method is a list": set_at("method", []),
    "method is a number": set_at("method", 7),
    "params are a list": set_at("params", []),
    "fitted is null": set_at("fitted", None),
    "fitted is a text": set_at("fitted", "yes"),
    "format is a list": set_at("format", []),
    "training is a text": set_at("training", "no"),
    "checksum is a number": set_at("sha256", 7),
    "checksum of the history is a list": set_at("history_sha256", [1]),
    "history is a list": set_at("fitted", "history", []),
    "channels are none": set_at("fitted", "n_features_in", 0),
    "channels are a text": set_at("fitted", "n_features_in", "1"),
    "channels are too many": set_at("fitted", "n_features_in", 10**9),
    "seed is negative": set_at("fitted", "seed", -1),
    "steps are a fraction": set_at("fitted", "n_iter", 0.5),
    "fingerprint is a table": set_at("fingerprint", {}),
    "scale has zeros": set_at("fitted", "scale", [[0.0], [0.0]]),
    "scale has a minus": set_at("fitted", "scale", [[0.0], [-1.0]]),
    "scale is infinite": set_at("fitted", "scale", [[0.0], [1e999]]),
    "scale has no number": set_at("fitted", "scale", [["a"], ["b"]]),
    "scale is of other channels": set_at("fitted", "scale", [[0.0, 0.0], [1.0, 1.0]]),
    "scale is a number": set_at("fitted", "scale", 3),
    "scale lacks a half": set_at("fitted", "scale", [[0.0]]),
    "embedding has no size": set_at("params", "output_dims", 0),
    "embedding has a size below zero": set_at("params", "output_dims", -5),
    "embedding has half a dimension": set_at("params", "output_dims", 4.5),
    "pooling is a list": set_at("params", "pooling", ["max"]),
    "device is a list": set_at("params", "device", []),
    "precision is a table": set_at("params", "precision", {}),
    "schedule is a list": set_at("params", "lr_schedule", []),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_a_description_of_another_form_is_one_error_that_names_the_folder(folder, change):
    edit(folder, change)
    with pytest.raises(ModelFileError, match=r"model"):
        load_model(folder)


@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        '{"format": 1, "method": ' + DEEP + "}",
        '{"format": ' + "9" * 10_000 + "}",
        "null",
        '{"format": NaN}',
        "\ud800".encode("utf-8", "surrogatepass"),
        b"\xff\xfe{}",
    ],
    ids=["deep", "deep inside", "long number", "null", "NaN", "surrogate", "UTF-16"],
)
def test_text_that_json_chokes_on_is_the_same_error(folder, text):
    path = folder / "config.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ModelFileError, match=r"config\.json"):
        load_model(folder)


def test_a_description_of_absurd_size_is_not_read(folder):
    with (folder / "config.json").open("r+b") as file:
        file.truncate(2**40)  # no space is taken
    with pytest.raises(ModelFileError, match=r"config\.json"):
        load_model(folder)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_weights_that_are_no_numbers_are_refused(folder, value):
    def change(tensors):
        tensors[sorted(tensors)[0]].view(-1)[0] = value

    rewrite_weights(folder, change)
    with pytest.raises(ModelFileError, match="NaN or infinity"):
        load_model(folder)


def test_weights_that_are_missing_too_many_or_of_another_shape_are_named(folder):
    for change, words in (
        (lambda t: t.pop("averaged.input.bias"), r"input\.bias"),
        (lambda t: t.update({"averaged.more": torch.ones(3)}), "more"),
        (lambda t: t.update({"averaged.input.bias": torch.ones(9)}), r"input\.bias"),
    ):
        copy = Path(shutil.copytree(folder, folder.parent / "copy", dirs_exist_ok=True))
        rewrite_weights(copy, change)
        with pytest.raises(ModelFileError, match=words):
            load_model(copy)


@pytest.mark.parametrize("lines", ["[]\n", "3\n", '{"step": 1}\n', '{"loss": []}\n', "{\n", DEEP])
def test_a_history_of_another_form_is_refused(folder, lines):
    (folder / "history.jsonl").write_text(lines)
    digest = hashlib.sha256(lines.encode()).hexdigest()
    edit(folder, set_at("history_sha256", digest))
    with pytest.raises(ModelFileError, match=r"history\.jsonl"):
        load_model(folder)


CLASSIFIERS = {
    "fitted is null": set_at("fitted", None),
    "classes are a number": set_at("fitted", "classes", 3),
    "classes are tables": set_at("fitted", "classes", [{}, {}, {}]),
    "type of the classes is huge": set_at("fitted", "dtype", "<U1000000000"),
    "type of the classes is unheard of": set_at("fitted", "dtype", "zz"),
    "type of the classes is a list": set_at("fitted", "dtype", [["a", "<i8"]]),
    "columns are of no class": set_at("fitted", "columns", [0, 1, 99]),
    "labelled series are not there": set_at("fitted", "labelled", [10**6]),
    "series are too many": set_at("fitted", "n_series", 10**15),
    "probe is unknown": set_at("fitted", "probe", "os.system"),
    "probe is a list": set_at("fitted", "probe", []),
    "network is not there": set_at("fitted", "probe", None),
    "parameter is unknown": set_at("params", "unheard_of", 1),
    "encoder is another one": set_at("fitted", "encoder", "0" * 64),
}


@pytest.mark.parametrize("change", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_so_is_the_folder_of_a_classifier(tmp_path, change):
    folder = Path(shutil.copytree(BEFORE / "classifier", tmp_path / "model"))
    edit(folder, change)
    with pytest.raises(ModelFileError, match="model"):
        SemiSupervisedClassifier.load(folder)


def test_embeddings_that_a_classifier_keeps_have_a_class_each(tmp_path):
    for change in (
        lambda t: t.update(labels=t["labels"][:-1].clone()),
        lambda t: t.update(labels=t["labels"] + 50),
        lambda t: t.update(embeddings=t["embeddings"][:, :2].contiguous()),
        lambda t: t.pop("labels"),
    ):
        folder = Path(shutil.copytree(BEFORE / "classifier", tmp_path / "m", dirs_exist_ok=True))
        rewrite_weights(folder, change)
        with pytest.raises(ModelFileError):
            SemiSupervisedClassifier.load(folder)


@pytest.fixture(scope="module")
def series_classifier(tmp_path_factory):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 2, 30)), [0, 1] * 4
    folder = tmp_path_factory.mktemp("classifier") / "model"
    SeriesClassifier(features=("base", "synthetic"), device="cpu").fit(X, y).save(folder)
    return folder


BY_SERIES = {
    "fitted is null": set_at("fitted", None),
    "classes are a number": set_at("fitted", "classes", 3),
    "classes are tables": set_at("fitted", "classes", [{}, {}]),
    "classes are the same twice": set_at("fitted", "classes", [1, 1]),
    "classes are too many": set_at("fitted", "classes", [0, 1, 2]),
    "type of the classes is huge": set_at("fitted", "dtype", "<U1000000000"),
    "type of the classes is unheard of": set_at("fitted", "dtype", "zz"),
    "type of the classes is of times": set_at("fitted", "dtype", "<M8[ns]"),
    "features are unknown": set_at("fitted", "features", ["os.system"]),
    "features are none": set_at("fitted", "features", []),
    "features are the same twice": set_at("fitted", "features", ["base", "base"]),
    "features are others": set_at("fitted", "features", ["statistics"]),
    "features need another package": set_at("fitted", "features", ["multirocket"]),
    "channels are others": set_at("fitted", "n_channels", 3),
    "channels are without end": set_at("fitted", "n_channels", 10**12),
    "penalty is a word": set_at("fitted", "alpha", "much"),
    "factor is null": set_at("fitted", "factor", None),
    "models are none": set_at("fitted", "models", {}),
    "a model is elsewhere": set_at("fitted", "models", "../..", "0" * 64),
    "a model is another one": set_at("fitted", "models", "encoder", "0" * 64),
    "parameter is unknown": set_at("params", "unheard_of", 1),
    "weights of classes are a number": set_at("params", "class_weight", [3]),
}


@pytest.mark.parametrize("change", BY_SERIES.values(), ids=BY_SERIES)
def test_so_is_the_folder_of_a_series_classifier(tmp_path, series_classifier, change):
    folder = Path(shutil.copytree(series_classifier, tmp_path / "model"))
    edit(folder, change)
    began = time.perf_counter()
    with pytest.raises(ModelFileError, match="model"):
        SeriesClassifier.load(folder)
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.pop("offset"),
        lambda t: t.update(offset=t["offset"][:-1].clone()),
        lambda t: t.update(shifts=torch.zeros(9)),
        lambda t: t.pop("base.mean"),
        lambda t: t.update({"base.coefficients": t["base.coefficients"][:-1].clone()}),
        lambda t: t.update({k: v[:-2].clone() for k, v in t.items() if k.startswith("base.")}),
        lambda t: t.update({"base.factor": t["base.factor"].bfloat16()}),
    ],
)
def test_numbers_that_do_not_fit_its_encoder_are_refused(tmp_path, series_classifier, change):
    folder = Path(shutil.copytree(series_classifier, tmp_path / "model"))
    rewrite_weights(folder, change)
    with pytest.raises(ModelFileError, match="model"):
        SeriesClassifier.load(folder)


@pytest.mark.parametrize("inner", ["encoder", "synthetic"])
def test_a_series_classifier_without_one_of_its_models_is_refused(
    tmp_path, series_classifier, inner
):
    folder = Path(shutil.copytree(series_classifier, tmp_path / "model"))
    shutil.rmtree(folder / inner)
    with pytest.raises(ModelFileError, match="model"):
        SeriesClassifier.load(folder)


def test_a_pretrained_folder_with_absurd_lengths_is_refused(tmp_path):
    from softclt import load_pretrained

    load_pretrained("base").fit(np.random.default_rng(0).normal(size=(3, 1, 30))).save(
        tmp_path / "model"
    )
    load_model(tmp_path / "model")
    for key, value in (("least_length", 10**12), ("width", 10**9), ("name", []), ("adapted", 3)):
        copy = Path(shutil.copytree(tmp_path / "model", tmp_path / "c", dirs_exist_ok=True))
        edit(copy, set_at("fitted", "weights", key, value))
        with pytest.raises(ModelFileError, match="does not fit"):
            load_model(copy)
