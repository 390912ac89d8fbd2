"""Fine-tuning: where it begins, when it is taken, and that it comes back from files."""

import numpy as np
import pytest
import torch

from softclt import SeriesClassifier, load_pretrained
from softclt.classification import tuning
from softclt.classification.blocks import Outputs
from softclt.classification.design import Landmarks
from softclt.classification.ridge import fit_ridge, targets
from softclt.data.preparation import resampled


def waves(n, rng, length=40):
    y = np.arange(n) % 3
    t, phase = np.arange(length), rng.uniform(0, 6, size=(n, 1, 1))
    return np.sin(0.3 * 1.6 ** y[:, None, None] * t + phase) + 0.5 * rng.normal(
        size=(n, 1, length)
    ), y


@pytest.fixture(autouse=True)
def few_steps(monkeypatch):
    monkeypatch.setattr(tuning, "MOST_STEPS", 20)


@pytest.fixture
def encoder():
    return load_pretrained("base", readout="rich", device="cpu")


def lesson(encoder, X, y, seed=0):
    return tuning._Lesson(encoder.fit(X), X, y, np.ones(len(y)), seed, False)


def test_a_fifth_of_each_class_is_held_out_and_no_class_is_emptied():
    codes = np.array([0] * 20 + [1] * 3 + [2] + [3] * 2)
    held = tuning.held_out(codes, seed=3)
    assert np.bincount(codes[held], minlength=4).tolist() == [4, 1, 0, 1]
    assert not np.array_equal(held, tuning.held_out(codes, seed=4))
    assert len(tuning.held_out(np.arange(5), seed=0)) == 0


def test_it_begins_with_what_a_ridge_says(encoder, rng):
    X, y = waves(21, rng)
    start = lesson(encoder, X, y).begin(np.arange(len(X)))
    own = Landmarks.of(Outputs(encoder, 0), X)
    ridge = fit_ridge(own.products(), targets(y, 3), np.ones(21), np.arange(21))
    said = own.features.astype(float) @ (own.features.T.astype(float) @ ridge.dual) + ridge.offset
    found = start.decisions(X)
    factor = np.ptp(found - found.mean(axis=0)) / np.ptp(said - said.mean(axis=0))
    shift = found - factor * said
    np.testing.assert_allclose(shift, np.tile(shift.mean(axis=0), (21, 1)), atol=1e-3)


def test_the_network_says_what_the_classifier_will_say(encoder, rng):
    X, y = waves(12, rng)
    start = lesson(encoder, X, y).begin(np.arange(len(X)))
    x = torch.as_tensor(resampled(X, int(encoder.steps_of(X)[0])))
    with torch.no_grad():
        logits = start.network.logits(x).numpy()
    np.testing.assert_allclose(logits, start.decisions(X), atol=1e-4)


def test_where_it_does_not_pay_nothing_is_tuned(encoder, rng):
    X, y = waves(15, rng)
    sure = np.eye(3)[y] * (1 - 3e-9) + 1e-9
    assert tuning.tune(encoder.fit(X), X, y, np.ones(15), sure, seed=0) is None
    alone = np.arange(15)
    assert tuning.tune(encoder, X, alone, np.ones(15), np.full((15, 15), 1 / 15), seed=0) is None


@pytest.mark.slow
def test_a_tuned_classifier_predicts_and_comes_back_and_the_encoder_stays(
    rng, tmp_path, monkeypatch
):
    X, y = waves(24, rng)
    new, _ = waves(9, rng)
    before = load_pretrained("base", device="cpu").transform(new)
    monkeypatch.setattr(tuning._Lesson, "surprise", lambda self, odds, rows: -float(odds.std()))
    model = SeriesClassifier(fine_tune=True, features=("base",), random_state=0, device="cpu")
    model.fit(X, y)
    assert model.tuned_
    assert model.features_ == ("outputs",)
    assert (model.predict(X) == y).mean() > 0.8
    assert model.left_out_.counted.tolist() == tuning.held_out(y, 0).tolist()
    model.save(tmp_path / "m")
    again = SeriesClassifier.load(tmp_path / "m")
    assert again.tuned_
    np.testing.assert_allclose(again.predict_proba(new), model.predict_proba(new), atol=1e-6)
    np.testing.assert_array_equal(load_pretrained("base", device="cpu").transform(new), before)
    frozen = SeriesClassifier(features=("base",), random_state=0, device="cpu").fit(X, y)
    assert not frozen.tuned_
    assert np.abs(frozen.predict_proba(new) - model.predict_proba(new)).max() > 1e-3


def test_the_same_seed_tunes_the_same(encoder, rng, monkeypatch):
    X, y = waves(12, rng)
    monkeypatch.setattr(tuning, "MOST_STEPS", 3)
    unsure = np.full((12, 3), 1e-9)
    first, second = (
        tuning.tune(encoder.fit(X), X, y, np.ones(12), unsure, seed=5) for _ in range(2)
    )
    np.testing.assert_array_equal(first.coefficients, second.coefficients)
    np.testing.assert_array_equal(first.decisions, second.decisions)
