"""Files that version 0.1.0 wrote before the rooms were put in order are read as they were."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from softclt import SemiSupervisedClassifier, TS2Vec, load_model
from softclt.distances import open_store
from softclt.persistence import versions
from softclt.training import checkpoint as checkpoints

BEFORE = Path(__file__).parent / "files" / "before"
SMALL = {"output_dims": 4, "hidden_dims": 4, "depth": 2, "random_state": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def expected():
    """The series, and what the version that wrote the files made of them."""
    return np.load(BEFORE / "expected.npz")


@pytest.mark.parametrize("name", ["ts2vec", "ts2vec-training", "cost", "tstcc"])
def test_a_model_gives_the_embeddings_that_it_gave(name, expected):
    embedded = load_model(BEFORE / name).transform(expected["X"])
    then = expected[name.removesuffix("-training")]
    np.testing.assert_allclose(embedded, then, rtol=1e-5, atol=1e-6)


def test_training_of_a_saved_model_goes_on(expected):
    model = load_model(BEFORE / "ts2vec-training").set_params(warm_start=True, max_iter=2)
    assert model.fit(expected["X"]).n_iter_ == 5


def test_a_classifier_gives_the_probabilities_that_it_gave(expected):
    classifier = SemiSupervisedClassifier.load(BEFORE / "classifier")
    found = classifier.predict_proba(expected["X"])
    np.testing.assert_allclose(found, expected["classifier"], rtol=1e-4, atol=1e-6)


def test_a_store_of_distances_is_complete(expected):
    np.testing.assert_array_equal(np.asarray(open_store(BEFORE / "store")), expected["store"])


@pytest.mark.slow
def test_a_checkpoint_goes_on_to_the_same_embeddings(expected, tmp_path, monkeypatch, caplog):
    folder = tmp_path / "checkpoint"
    shutil.copytree(BEFORE / "checkpoint", folder)
    # It holds the versions that wrote it, and other ones refuse it: here the format is in question.
    header, _ = checkpoints._read(folder / "stack-0.safetensors")
    monkeypatch.setattr(checkpoints, "versions", lambda: versions() | header["run"]["versions"])
    model = TS2Vec(**SMALL, max_iter=203).fit(expected["X"], checkpoint=folder)
    assert "going on from step 100" in caplog.text
    assert len(model.history_["loss"]) == 203
    then = expected["checkpoint"]
    np.testing.assert_allclose(model.transform(expected["X"]), then, rtol=1e-3, atol=1e-4)
