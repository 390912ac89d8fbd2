"""What a classifier says of itself is what happens on new series."""

from pathlib import Path

import numpy as np
import pytest

from softclt import SeriesClassifier, load
from softclt.tasks import read_results

LINES = Path(__file__).parents[2] / "docs" / "results" / "classifiers" / "ucr.jsonl.gz"


def test_left_out_accuracy_told_the_accuracy_of_thirty_data_sets():
    own = [one for one in read_results(LINES) if one.configuration == "softclt"]
    pairs = np.array([(one.metrics["loo_accuracy"], one.metrics["accuracy"]) for one in own])
    left_out, test = pairs[np.isfinite(pairs).all(axis=1)].T
    assert len(test) >= 30
    assert abs(np.mean(left_out - test)) < 0.03
    assert np.mean(np.abs(left_out - test)) < 0.07
    assert np.corrcoef(left_out, test)[0, 1] > 0.7


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ucr/ItalyPowerDemand", "ucr/GunPoint"])
def test_left_out_accuracy_tells_the_accuracy_of_shipped_sets(name):
    pytest.importorskip("aeon", reason="its sample data")
    data = load(name)
    model = SeriesClassifier(features=("base",)).fit(data.X_train, data.y_train)
    score, told = model.score(data.X_test, data.y_test), model.left_out_.accuracy
    assert told.low - 0.05 < score < told.high + 0.05
