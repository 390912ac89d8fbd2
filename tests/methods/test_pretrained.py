"""Encoders that come trained."""

import json
import shutil
import signal

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import softclt
from softclt import load_pretrained, pretrained
from softclt.methods import Pretrained
from softclt.methods.pretrained import READOUTS
from softclt.persistence import ModelFileError
from softclt.training import loop

NAMES = ("base", "synthetic")
COMPACT, RICH, LAST = 240, 6122, 120


@pytest.fixture
def series(rng):
    return rng.normal(size=(10, 1, 50)).cumsum(axis=-1)


@pytest.fixture(scope="module")
def base():
    return load_pretrained("base")


@pytest.mark.parametrize("name", NAMES)
def test_it_transforms_without_fit(name, series):
    encoder = load_pretrained(name)
    assert encoder.transform(series).shape == (10, COMPACT)
    assert load_pretrained(name, readout="rich").transform(series).shape == (10, RICH)


@pytest.mark.parametrize("length", [2, 3, 17, 512, 3000, 100_000])
@pytest.mark.parametrize("readout", READOUTS)
def test_the_embedding_does_not_grow_with_the_length(length, readout, rng):
    X = rng.normal(size=(1, 1, length))
    R = load_pretrained("base", readout=readout).transform(X)
    assert R.shape == (1, COMPACT if readout == "compact" else RICH)
    assert np.isfinite(R).all()


def test_varying_lengths_and_missing_values_are_encoded_each_by_itself(base, rng):
    X = [rng.normal(size=(2, n)) for n in (2, 9, 30)]
    X[2][0, 4:9] = np.nan
    together = base.transform(X)
    alone = np.concatenate([base.transform([one]) for one in X])
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_channels_stand_side_by_side_or_are_averaged(base, rng):
    X = rng.normal(size=(4, 3, 25))
    own = np.stack([base.transform(X[:, c : c + 1]) for c in range(3)], axis=1)  # (4, 3, M)
    np.testing.assert_allclose(base.transform(X), own.reshape(4, -1), atol=1e-5)
    mean = load_pretrained("base", channels="mean")
    np.testing.assert_allclose(mean.transform(X), own.mean(axis=1), atol=1e-5)
    X[1, 2] = np.nan
    np.testing.assert_allclose(mean.transform(X)[1], own[1, :2].mean(axis=0), atol=1e-5)


def test_one_value_is_a_constant_and_no_value_is_refused(base):
    X = np.full((3, 1, 4), np.nan)
    X[0], X[1, 0, 2], X[2] = [1, 2, 3, 4], 5, 7
    R = base.transform(X)
    np.testing.assert_allclose(R[1], R[2], atol=1e-6)
    np.testing.assert_allclose(base.transform([[5.0]]), R[1:2], atol=1e-4)  # rounding of one row
    X[1] = np.nan
    with pytest.raises(ValueError, match="series 1 of X has no step with a value"):
        base.transform(X)


def test_level_and_scale_are_in_the_rich_read_out_alone(series):
    compact, rich = (load_pretrained("base", readout=name) for name in READOUTS)
    np.testing.assert_allclose(
        compact.transform(series), compact.transform(7 * series + 3), atol=1e-4
    )
    one, other = rich.transform(series), rich.transform(7 * series + 3)
    np.testing.assert_allclose(one[:, :-2], other[:, :-2], atol=1e-4)
    assert (one[:, -2:] != other[:, -2:]).all()


def test_names_of_features_tell_block_pooling_and_channel(rng):
    rich = load_pretrained("base", readout="rich").fit(rng.normal(size=(3, 2, 10)))
    names = rich.get_feature_names_out()
    assert names[0] == "channel0_block0_max0"
    assert names[-1] == "channel1_scale"
    assert len(set(names)) == len(names) == 2 * RICH
    assert load_pretrained("base").get_feature_names_out()[COMPACT // 2] == "mean0"


def test_fit_changes_no_weight_and_clone_keeps_them(base, series):
    before = base.transform(series)
    fitted = clone(base).fit(series, np.arange(10) % 2)
    np.testing.assert_array_equal(fitted.transform(series), before)
    with pytest.raises(ValueError, match=r"2 channel.* fitted with 1"):
        fitted.transform(np.ones((2, 2, 30)))


def test_it_works_in_a_pipeline_and_in_cross_validation(base, rng):
    y = np.arange(40) % 2
    steps = np.arange(60) / 60
    X = np.sin(2 * np.pi * (3 + 3 * y[:, None]) * steps + rng.random((40, 1)) * 6)
    scores = cross_val_score(make_pipeline(base, RidgeClassifier()), X[:, None], y, cv=4)
    assert scores.mean() == 1


def test_adapting_goes_on_from_the_weights_and_is_kept(base, series, tmp_path):
    encoder = clone(base).fit(series)
    before = {k: v.clone() for k, v in encoder.module_.state_dict().items()}
    encoder.adapt(series, max_iter=2)
    after = encoder.module_.state_dict()
    moved = max(float((after[k] - before[k]).abs().max()) for k in after)
    assert 0 < moved < 0.01  # two small steps, not a new beginning
    R = encoder.transform(series)
    assert not np.array_equal(R, base.transform(series))
    encoder.save(tmp_path / "adapted")
    for same in (clone(encoder).fit(series), encoder.fit(series)):
        np.testing.assert_array_equal(same.transform(series), R)
    loaded = softclt.load_model(tmp_path / "adapted")
    np.testing.assert_array_equal(loaded.transform(series), R)
    np.testing.assert_array_equal(clone(loaded).fit(series).transform(series), R)


def test_max_iter_lets_fit_adapt(base, series):
    adapted = clone(base).set_params(max_iter=2, random_state=0).fit(series)
    assert len(adapted.history_["loss"]) == 2
    assert not np.array_equal(adapted.transform(series), base.transform(series))


def test_a_name_without_version_is_the_newest_and_files_record_it(base, series, tmp_path):
    assert base.weights_ == base.weights
    assert base.weights_.startswith("base-")
    base.save(tmp_path / "model")
    told = json.loads((tmp_path / "model" / "config.json").read_text())["fitted"]["weights"]
    assert (told["name"], told["sha256"]) == (base.weights_, base.digest_)
    same = softclt.load_model(tmp_path / "model")
    np.testing.assert_array_equal(same.transform(series), base.transform(series))


def test_a_name_stands_for_a_model_folder(base, series):
    np.testing.assert_array_equal(
        softclt.load_model("base").transform(series), base.transform(series)
    )


def test_every_step_and_window_has_an_embedding(base, rng):
    X = [rng.normal(size=n) for n in (40, 25)]
    Z = base.encode(X, level="timestamp")
    assert Z.shape == (2, 40, LAST)
    assert np.isnan(Z[1, 25:]).all()
    assert np.isfinite(Z[1, :25]).all()
    np.testing.assert_allclose(base.encode(X[1:], level="timestamp"), Z[1:, :25], atol=1e-5)
    assert base.encode(X, level="window", window=10).shape == (2, 4, COMPACT)


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(ModelFileError, match=r"bsae is not a model folder.*base.*did you mean"):
        load_pretrained("bsae")


@pytest.fixture
def copied(tmp_path):
    folder = tmp_path / "own"
    shutil.copytree(pretrained.folder_of("base"), folder)
    return folder


def test_a_folder_of_ones_own_is_loaded_like_a_name(copied, base, series):
    own = load_pretrained(str(copied))
    np.testing.assert_array_equal(own.transform(series), base.transform(series))


def test_damaged_weights_are_refused(copied):
    data = bytearray((copied / "model.safetensors").read_bytes())
    data[-5] ^= 1
    (copied / "model.safetensors").write_bytes(data)
    with pytest.raises(ModelFileError, match=r"weights|safetensors"):
        load_pretrained(str(copied))


def test_a_manifest_of_other_weights_is_refused(copied):
    manifest = json.loads((copied / "manifest.json").read_text())
    (copied / "manifest.json").write_text(json.dumps(manifest | {"sha256": "0" * 64}))
    with pytest.raises(ModelFileError, match="belongs to other weights"):
        load_pretrained(str(copied))
    (copied / "manifest.json").write_text("[")
    with pytest.raises(ModelFileError, match="is damaged"):
        load_pretrained(str(copied))


def test_what_does_not_fit_is_refused(series):
    with pytest.raises(ValueError, match="readout is 'fat'"):
        load_pretrained("base", readout="fat")
    with pytest.raises(ValueError, match="leave width out"):
        Pretrained(width=3).fit(series)
    with pytest.raises(ValueError, match="length is 0"):
        load_pretrained("base", length=0)


def test_the_manifest_names_everything_that_was_seen():
    manifest = pretrained.manifest_of("base")
    sets = manifest["corpus"]["sets"]
    assert all(len(one["fingerprint"]) == 16 for one in sets)
    assert not any(one["name"].startswith("few_labels/") for one in sets)


@pytest.mark.parametrize("readout", READOUTS)
def test_bfloat16_is_close_to_float32(readout, series):
    rough = load_pretrained("base", readout=readout, precision="bfloat16").transform(series)
    R = load_pretrained("base", readout=readout).transform(series)
    assert 0 < np.abs(rough - R).max() < 0.05 * np.abs(R).max()


def test_series_are_read_at_their_own_steps_between_two_bounds(rng):
    encoder = load_pretrained("base")
    X = [rng.normal(size=n).cumsum() for n in (5, 128, 129, 300, 512, 4000)]
    R = encoder.transform(X)
    for i, steps in enumerate((128, 128, 192, 320, 512, 512)):
        only = load_pretrained("base", length=steps, least_length=steps)
        np.testing.assert_allclose(R[i : i + 1], only.transform(X[i : i + 1]), atol=1e-4)


def test_what_pads_a_series_changes_nothing(base, rng):
    X = rng.normal(size=(2, 1, 150)).cumsum(axis=-1)
    padded = np.pad(X, ((0, 0), (0, 0), (0, 700)), constant_values=np.nan)
    np.testing.assert_allclose(base.transform(padded), base.transform(X), atol=1e-4)


def test_a_saved_model_of_other_weights_of_that_name_is_refused(base, series, tmp_path):
    base.save(tmp_path / "model")
    path = tmp_path / "model" / "config.json"
    config = json.loads(path.read_text())
    config["fitted"]["weights"]["sha256"] = "0" * 64
    path.write_text(json.dumps(config))
    with pytest.raises(ModelFileError, match=r"base-1.* other weights"):
        softclt.load_model(tmp_path / "model")


def test_tasks_read_it_as_its_read_out_says():
    rows = [
        softclt.evaluate(
            "classification", Pretrained(readout=name), "synthetic/waves", probe="ridge"
        )
        for name in READOUTS
    ]
    assert all(row.metrics["accuracy"] > 0.7 for row in rows)


def test_ctrl_c_keeps_what_adapting_has_changed(series, monkeypatch):
    original = loop._Stepper.take

    def take(self, step):
        if step == 1:
            signal.raise_signal(signal.SIGINT)
        return original(self, step)

    monkeypatch.setattr(loop._Stepper, "take", take)
    encoder = load_pretrained("base", random_state=0, device="cpu")
    before = encoder.transform(series)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background
    try:
        with pytest.warns(UserWarning, match="2 of 5 steps"), pytest.raises(KeyboardInterrupt):
            encoder.adapt(series, max_iter=5)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert encoder.n_iter_ == 2
    assert not np.array_equal(encoder.transform(series), before)
    assert clone(encoder)._start_.adapted
