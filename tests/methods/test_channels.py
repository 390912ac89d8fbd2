"""Models of one channel on series of several."""

import numpy as np
import pytest

from softclt.methods import methods
from softclt.methods.channels import one_by_one, transform_channels, with_channels
from softclt.tasks.few_labels import needs_labels

SMALL = {"output_dims": 6, "hidden_dims": 4, "depth": 2, "max_iter": 2, "random_state": 0}


UNLABELLED = [name for name in methods.names() if not needs_labels(methods[name]())]


def fitted(name, X):
    known = methods[name]().get_params()
    return methods[name](**{k: v for k, v in SMALL.items() if k in known}).fit(X)


def test_channels_stand_side_by_side_in_their_order(rng):
    X = rng.normal(size=(3, 2, 20))
    model = fitted("ts2vec", one_by_one(X))
    R = transform_channels(model, X)
    np.testing.assert_allclose(R[1, 6:], model.transform(X[1:2, 1:])[0], atol=1e-6)
    assert R.shape == (3, 12)


@pytest.mark.parametrize("name", UNLABELLED)
def test_equal_channels_give_what_the_one_channel_gave(name, rng):
    X = 3 + 2 * rng.normal(size=(5, 1, 24))
    narrow = fitted(name, X)
    wide = with_channels(narrow, 3)
    assert wide.n_features_in_ == 3
    before = narrow.transform(X)
    after = wide.transform(np.repeat(X, 3, axis=1))
    # Methods that read channels one by one have them side by side.
    expected = np.tile(before, after.shape[1] // before.shape[1])
    np.testing.assert_allclose(after, expected, atol=1e-4)
    np.testing.assert_array_equal(narrow.transform(X), before)


def test_a_model_of_several_channels_is_refused(rng):
    model = fitted("ts2vec", rng.normal(size=(4, 2, 20)))
    with pytest.raises(ValueError, match="fitted on 2 channels; expected one"):
        with_channels(model, 3)
