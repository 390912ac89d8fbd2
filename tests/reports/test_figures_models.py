"""Snapshots of a training, pictures of the steps of a series, and figures by name."""

import numpy as np
import pytest
from sklearn.base import clone

from softclt import TS2Vec
from softclt.data import waves
from softclt.reports.figures import (
    Study,
    draw,
    figures,
    figures_for_page,
    phases,
    series_and_timestamps,
    snapshots,
    timestamps_over_training,
    training_curves,
)

pytest.importorskip("matplotlib")

SMALL = {"output_dims": 6, "hidden_dims": 4, "depth": 2, "batch_size": 4}


@pytest.fixture(scope="module")
def data():
    return waves(n_per_class=5, length=24, random_state=0)


@pytest.fixture(scope="module")
def study(data):
    return Study(data, TS2Vec(max_iter=10, random_state=3, **SMALL))


def weights(model):
    return {name: value.numpy() for name, value in model.module_.state_dict().items()}


@pytest.mark.parametrize("soft", [True, False], ids=["soft", "hard"])
def test_snapshots_are_uninterrupted_fits_of_so_many_steps(data, soft):
    taus = {} if soft else {"tau_instance": None, "tau_temporal": None}
    model = TS2Vec(random_state=0, max_epochs=1, **taus, **SMALL)
    taken = snapshots(model, data.X_train, [7, 0, 3])
    assert list(taken) == [0, 3, 7]
    assert not hasattr(model, "module_")
    for steps, snapshot in taken.items():
        whole = clone(model).set_params(max_iter=steps, max_epochs=None).fit(data.X_train)
        for name, value in weights(whole).items():
            np.testing.assert_array_equal(weights(snapshot)[name], value, err_msg=name)
        assert snapshot.n_iter_ == steps
        assert snapshot.history_["loss"] == whole.history_["loss"]
        assert snapshot.get_params()["max_iter"] == steps


def test_a_snapshot_does_not_change_when_training_goes_on(data):
    taken = snapshots(TS2Vec(random_state=0, **SMALL), data.X_train, [0, 5])
    first = [value.copy() for value in weights(taken[0]).values()]
    assert any((a != b).any() for a, b in zip(first, weights(taken[5]).values(), strict=True))


def test_snapshots_refuse_a_rate_that_looks_at_the_end(data):
    with pytest.raises(ValueError, match=r"lr_schedule is 'cosine'.*snapshots need 'constant'"):
        snapshots(TS2Vec(lr_schedule="cosine", **SMALL), data.X_train, [2])
    with pytest.raises(ValueError, match="at_steps is -1"):
        snapshots(TS2Vec(**SMALL), data.X_train, [-1])


def test_curves_are_the_losses_and_their_running_mean():
    losses = [8.0, 4.0, 2.0, 2.0]
    (ax,) = training_curves({"hard": losses, "soft": [1.0, 1.0]}, window=2).axes
    raw, mean, other, _ = ax.lines
    assert raw.get_ydata().tolist() == losses
    assert mean.get_ydata().tolist() == [8.0, 6.0, 3.0, 2.0]
    assert other.get_xdata().tolist() == [1, 2]
    assert ax.get_yscale() == "log"
    assert training_curves({"odd": [1.0, -1.0]}).axes[0].get_yscale() == "linear"


def test_maps_over_training_have_every_step_in_the_colour_of_its_time(rng):
    encodings = {"hard": {0: rng.normal(size=(15, 4)), 9: rng.normal(size=(15, 4))}}
    figure = timestamps_over_training(encodings)
    maps = [ax for ax in figure.axes if ax.get_title()]
    assert [ax.get_title() for ax in maps] == ["untrained", "9 steps"]
    for ax in maps:
        (points,) = ax.collections
        assert points.get_offsets().shape == (15, 2)
        assert points.get_array().tolist() == list(range(15))


def test_the_same_seed_gives_the_same_map(rng):
    Z = {"hard": {0: rng.normal(size=(20, 4))}}
    first, second = (timestamps_over_training(Z, seed=5).axes[0].collections[0] for _ in range(2))
    np.testing.assert_array_equal(first.get_offsets(), second.get_offsets())


def test_steps_in_the_order_of_time_are_near_in_time():
    Z = np.arange(30.0)[:, None] * np.ones((1, 3))
    panel = timestamps_over_training({"line": {0: Z}}, projection="pca").axes[0]
    assert panel.get_xlabel() == "near in time: 100%"


def test_phases_end_where_the_level_jumps():
    levels = np.repeat([0.0, 4.0, 1.0, 1.2], 15)
    assert phases(levels).tolist() == [0] * 15 + [1] * 15 + [2] * 30
    assert not phases(np.sin(np.arange(200) / 30)).any()
    assert not phases(np.zeros(40)).any()
    assert phases(np.arange(6.0)).tolist() == [0] * 6  # too short to tell


def test_groups_of_steps_are_named_and_counted(rng):
    own = np.repeat([0, 1], 10)
    Z = 9.0 * own[:, None] + rng.normal(size=(20, 3))
    figure = series_and_timestamps(own + 0.0, {"soft": Z}, ("phase", own), projection="pca")
    panel = figure.axes[3]
    assert [len(points.get_offsets()) for points in panel.collections] == [10, 10]
    assert panel.get_xlabel() == "same phase: 90%"  # nine of the ten nearest can be


def test_hard_and_soft_differ_in_the_taus_alone_and_start_alike(study):
    hard, soft = study.trained["hard"].get_params(), study.trained["soft"].get_params()
    assert {k for k in hard if hard[k] != soft[k]} == {"tau_instance", "tau_temporal"}
    untrained = [weights(moments[0]) for moments in study.over_training.values()]
    for name, value in untrained[0].items():
        np.testing.assert_array_equal(untrained[1][name], value)
    assert list(study.over_training["soft"]) == [0, 1, 3, 10]


@pytest.mark.parametrize("name", figures.names())
@pytest.mark.slow
def test_every_figure_says_what_it_rests_on(name, study):
    title, caption, figure = figures[name](study)
    assert title
    assert figure.axes
    if figures.tags(name)["data"]:
        assert "synthetic/waves" in caption
        assert "10 steps of training, seed 3" in caption
    else:
        assert caption.endswith("Computed, not learned: no data.")


@pytest.mark.slow
def test_figures_come_in_the_order_asked_for_and_share_their_models(data):
    fits = []

    class Counted(TS2Vec):
        def fit(self, *args, **kwargs):
            fits.append(self.tau_instance)
            return super().fit(*args, **kwargs)

    model = Counted(max_iter=1, random_state=0, **SMALL)
    pictures = dict(draw(["training", "lags", "timestamps"], data, model))
    assert list(pictures) == ["training", "lags", "timestamps"]
    assert fits == [None, None, 20.0, 20.0]  # hard and soft, untrained and after a step


def test_an_unknown_figure_is_refused_before_any_work():
    with pytest.raises(ValueError, match="unknown figure 'tsne'; known: designs, hierarchy"):
        figures_for_page(["training", "tsne"])


@pytest.mark.slow
def test_series_of_varying_length_with_holes_and_no_labels_can_be_drawn(rng):
    from softclt.data import Dataset

    X = [rng.normal(size=(2, n)) for n in (20, 14, 9, 20, 17, 12)]
    X[0][0, 3] = np.nan
    data = Dataset(X, meta={"name": "mine"})
    pictures = figures_for_page(None, data, TS2Vec(max_iter=1, random_state=0, **SMALL))
    assert len(pictures) == len(figures.names())
