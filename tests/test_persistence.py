import errno
import json
from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
import torch

import softclt
from softclt import TS2Vec
from softclt.persistence import ModelFileError, json_safe

FILES = ["config.json", "history.jsonl", "model.safetensors"]
SMALL = {"output_dims": 6, "hidden_dims": 4, "depth": 2, "max_iter": 2, "random_state": 3}


@pytest.fixture
def series(rng):
    return 50 + rng.normal(size=(9, 2, 20))


@pytest.fixture
def saved(series, tmp_path):
    model = TS2Vec(**SMALL).fit(series)
    model.save(tmp_path / "model")
    return model, tmp_path / "model"


def test_a_loaded_model_gives_the_same_embeddings_and_parameters(saved, series):
    model, folder = saved
    for loaded in (softclt.load_model(folder), TS2Vec.load(folder)):
        np.testing.assert_array_equal(loaded.transform(series), model.transform(series))
        assert loaded.get_params() == model.get_params()
        assert loaded.history_ == model.history_
    assert sorted(p.name for p in folder.iterdir()) == FILES


def test_the_description_names_method_versions_preprocessing_and_data(saved):
    config = json.loads((saved[1] / "config.json").read_text())
    assert config["method"] == "ts2vec"
    assert config["versions"]["torch"].startswith(torch.__version__.split("+")[0])
    assert len(config["fitted"]["scale"][0]) == 2
    assert len(config["fingerprint"]) == 16


def test_losses_are_lines_and_nowhere_else(saved):
    model, folder = saved
    lines = [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]
    assert lines == [{"step": k, "loss": v} for k, v in enumerate(model.history_["loss"], 1)]
    assert len(lines) == 2
    assert "loss" not in json.loads((folder / "config.json").read_text())["fitted"]["history"]


def test_a_model_with_its_losses_in_the_description_is_still_read(saved, series):
    model, folder = saved
    config = json.loads((folder / "config.json").read_text())
    del config["history_sha256"], config["params"]["lr_schedule"]
    config["fitted"]["history"]["loss"] = model.history_["loss"]
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "history.jsonl").unlink()
    old = softclt.load_model(folder)
    assert old.history_ == model.history_
    np.testing.assert_array_equal(old.transform(series), model.transform(series))


def test_training_goes_on_after_loading_as_if_nothing_had_happened(series, tmp_path):
    straight = TS2Vec(**SMALL | {"max_iter": 4}).fit(series)
    first = TS2Vec(**SMALL).fit(series)
    first.save(tmp_path / "half", training=True)
    second = TS2Vec.load(tmp_path / "half").set_params(warm_start=True).fit(series)
    np.testing.assert_allclose(second.history_["loss"], straight.history_["loss"], rtol=1e-6)
    np.testing.assert_allclose(second.transform(series), straight.transform(series), atol=1e-5)


def test_without_the_training_state_going_on_is_refused(saved, series):
    with pytest.raises(ValueError, match="training=True"):
        TS2Vec.load(saved[1]).set_params(warm_start=True).fit(series)


def test_saving_again_replaces_the_model(saved, series):
    model, folder = saved
    model.set_params(random_state=4).fit(series).save(folder)
    np.testing.assert_array_equal(TS2Vec.load(folder).transform(series), model.transform(series))


def rewrite(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def drop(folder, key):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    del config[key]
    path.write_text(json.dumps(config))


def flip_a_byte(folder):
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda f: (f / "config.json").unlink(), "config.json is missing"),
        (lambda f: (f / "model.safetensors").unlink(), "model.safetensors is missing"),
        (lambda f: (f / "config.json").write_text("{"), "is damaged"),
        (lambda f: (f / "config.json").write_text("[]"), "no format number"),
        (lambda f: rewrite(f, method="os.system"), "unknown method 'os.system'"),
        (lambda f: rewrite(f, format=99), "format 99"),
        (lambda f: drop(f, "params"), "lacks params"),
        (lambda f: rewrite(f, params={"output_dims": 7}), "does not fit"),
        (lambda f: rewrite(f, params={"unheard_of": 7}), "does not fit"),
        (lambda f: rewrite(f, fitted={}), "does not fit"),
        (flip_a_byte, "checksum"),
        (lambda f: (f / "history.jsonl").unlink(), "history.jsonl is missing"),
        (lambda f: (f / "history.jsonl").write_text("{"), "checksum"),
    ],
)
def test_damage_is_found_and_named(saved, damage, words):
    damage(saved[1])
    with pytest.raises(ModelFileError, match=words):
        softclt.load_model(saved[1])


def test_a_model_is_not_saved_over_a_file(saved, tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(ValueError, match="is a file"):
        saved[0].save(tmp_path / "taken")


@contextmanager
def no_room(path, durable=False):
    raise OSError(errno.ENOSPC, "No space left on device", str(path))
    yield


def test_a_failed_save_leaves_the_old_model_whole(saved, series, monkeypatch):
    model, folder = saved
    before = model.transform(series)
    monkeypatch.setattr("softclt.persistence.whole_file", no_room)
    with pytest.raises(OSError, match="No space"):
        model.set_params(random_state=9).fit(series).save(folder)
    monkeypatch.undo()
    np.testing.assert_array_equal(TS2Vec.load(folder).transform(series), before)
    assert sorted(p.name for p in folder.iterdir()) == FILES


LONG = np.arange(2000.0)  # longer than what NumPy and torch print in full


@pytest.mark.parametrize("wrap", [lambda x: x, torch.from_numpy, lambda x: partial(max, key=x)])
def test_long_parameters_are_told_apart_by_all_their_values(wrap):
    other = np.where(LONG == 1000, 7.0, LONG)
    assert json_safe(wrap(LONG)) == json_safe(wrap(LONG.copy())) != json_safe(wrap(other))
