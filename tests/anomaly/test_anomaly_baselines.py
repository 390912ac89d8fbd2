import numpy as np
import pytest
import torch
from scipy.stats import t as student_t
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from statsmodels.tsa.seasonal import seasonal_decompose

import naive
from softclt.anomaly.baselines import (
    Donut,
    FourierResidual,
    LuminolBitmap,
    SeasonalHybridESD,
    SpectralResidual,
)
from softclt.anomaly.baselines.channels import ChannelDetector, trailing_mean
from softclt.anomaly.baselines.donut import modified_elbo
from softclt.anomaly.baselines.twitter import esd_outliers, find_period, periodic_season
from softclt.anomaly.scorers import scorers

NAMES = ["donut", "dspot", "fft", "luminol", "spot", "sr", "twitter-ad"]
QUICK = {"donut": {"window": 25, "hidden": 32, "epochs": 30, "n_samples": 16, "random_state": 0}}
SHIFT_AND_SCALE = [name for name in NAMES if name != "sr"]

pytestmark = pytest.mark.filterwarnings("error")


def make(name, **settings):
    return scorers[name](**QUICK.get(name, {}) | settings)


def season(n, rng, period=25, noise=0.1):
    return np.sin(2 * np.pi * np.arange(n) / period) + noise * rng.normal(size=n)


@pytest.fixture
def normal(rng):
    return season(600, rng)


def with_spike(x, at=450):
    return np.where(np.arange(len(x)) == at, x + 4, x)


def with_shift(x, at=450, length=30):
    steps = np.arange(len(x))
    return np.where((steps >= at) & (steps < at + length), x + 3, x)


def with_other_shape(x, at=450, length=50):
    steps = np.arange(len(x))
    return np.where((steps >= at) & (steps < at + length), np.sin(2 * np.pi * steps / 6), x)


def test_all_baselines_of_the_paper_are_registered():
    assert set(NAMES) <= set(scorers.names(model=False))


@pytest.mark.parametrize("name", ["donut", "dspot", "fft", "spot", "sr", "twitter-ad"])
def test_a_spike_has_the_highest_score(name, normal):
    scores = make(name).fit([normal[None, :300]]).score(with_spike(normal)[None])
    assert np.nanargmax(scores) == 450


@pytest.mark.parametrize("name", ["donut", "dspot", "fft", "luminol", "spot", "sr", "twitter-ad"])
def test_a_level_shift_has_the_highest_score(name, normal):
    scores = make(name).fit([normal[None, :300]]).score(with_shift(normal)[None])
    assert 450 - 25 <= np.nanargmax(scores) < 480 + 25


@pytest.mark.parametrize("name", ["donut", "dspot", "fft", "twitter-ad"])
def test_another_shape_has_the_highest_score(name, normal):
    settings = {"epochs": 60, "batch_size": 64} if name == "donut" else {}
    scorer = make(name, **settings).fit([normal[None, :440]])
    assert 450 <= np.nanargmax(scorer.score(with_other_shape(normal)[None])) < 500 + 10


def test_luminol_finds_another_shape_if_its_windows_hold_whole_cycles(rng):
    x = with_other_shape(season(2000, rng, noise=0.02), at=1200, length=200)
    scores = LuminolBitmap(window=50).fit([x[None]]).score(x[None])
    assert min(abs(np.nanargmax(scores) - 1200), abs(np.nanargmax(scores) - 1400)) <= 50


@pytest.mark.parametrize("name", ["dspot", "spot", "sr", "twitter-ad"])
def test_detect_finds_the_spike_and_little_else(name, normal):
    found = make(name).fit([normal[None, :300]]).detect(with_spike(normal)[None])
    assert found.dtype == bool
    assert found[450]
    assert found.sum() < 12


@pytest.mark.parametrize("name", ["fft", "luminol"])
def test_detect_agrees_with_the_score(name, normal):
    x = with_shift(normal)[None]
    scorer = make(name).fit([x])
    scores, found = np.nan_to_num(scorer.score(x)), scorer.detect(x)
    assert scores[found].min() > scores[~found].max()
    assert found[450:480].any()


def test_spectral_residual_equals_its_equations(rng):
    x = rng.normal(size=60).cumsum()
    ours = SpectralResidual().fit([x[None]]).score(x[None])
    np.testing.assert_allclose(ours, naive.spectral_residual_scores(x.tolist()), rtol=1e-9)


def test_spectral_residual_of_a_window_is_that_of_the_steps_so_far(rng):
    x = rng.normal(size=40).cumsum()
    scorer = SpectralResidual(window=20).fit([x[None]])
    scores = scorer.score(x[None])
    assert np.isnan(scores[:11]).all()
    for t in (11, 15, 19, 20, 30, 39):
        so_far = x[max(0, t - 19) : t + 1]
        assert scores[t] == pytest.approx(naive.spectral_residual_scores(so_far.tolist())[-1])
    np.testing.assert_array_equal(scores[:30], scorer.score(x[None, :30]))  # no look ahead


def test_fourier_residual_equals_its_equations(rng):
    x = with_spike(rng.normal(size=120), at=70)
    ours = FourierResidual().fit([x[None]]).score(x[None])
    np.testing.assert_allclose(ours, naive.fourier_scores(x.tolist()), rtol=1e-9, atol=1e-12)


def test_luminol_equals_its_definition(rng):
    x = rng.normal(size=90).round(1)
    for settings in ({"window": 10}, {"window": 12, "n_bins": 3, "pattern": 3}):
        ours = LuminolBitmap(**settings).fit([x[None]]).score(x[None])
        np.testing.assert_array_equal(ours, naive.luminol_scores(x.tolist(), **settings))


@pytest.mark.parametrize(("length", "window"), [(300, 25), (4000, 50), (40_000, 200)])
def test_luminols_window_is_a_share_of_the_series_within_bounds(length, window, rng):
    scores = LuminolBitmap().fit([rng.normal(size=(1, length))]).score(rng.normal(size=(1, length)))
    assert np.flatnonzero(~np.isnan(scores)).tolist() == list(range(window, length - window + 1))


def critical(n, i):
    p = 1 - 0.05 / (2 * (n - i + 1))
    t = student_t.ppf(p, n - i - 1)
    return t * (n - i) / np.sqrt((n - i - 1 + t**2) * (n - i + 1))


@pytest.mark.parametrize("planted", [0, 1, 5, 9])
def test_esd_equals_the_test_as_plain_loops(planted, rng):
    x = rng.normal(size=101)
    x[rng.choice(101, planted, replace=False)] += rng.choice([-8, 8], planted)
    ours = esd_outliers(x, 10, 0.05).tolist()
    assert ours == naive.esd_outliers(x.tolist(), 10, critical)
    assert len(ours) >= planted


def test_esd_finds_nothing_where_most_values_are_equal():
    x = np.r_[np.zeros(90), 100.0, np.arange(9.0)]
    assert not len(esd_outliers(x, 10, 0.05))
    scorer = SeasonalHybridESD().fit([x[None]])
    assert (scorer.score(x[None]) == 0).all()


def test_season_is_near_that_of_a_classical_decomposition(rng):
    x = season(240, rng, period=12) + 0.01 * np.arange(240)
    ours = periodic_season(x, 12)
    theirs = seasonal_decompose(x, period=12).seasonal
    assert np.abs(ours - theirs).max() < 0.1
    np.testing.assert_allclose(ours[12:], ours[:-12])


def test_season_is_not_bent_by_anomalies(rng):
    x = season(240, rng, period=12)
    spiky = with_spike(with_spike(x, at=100), at=148) * 1.0
    spiky[[100, 148]] += 40  # both at the same phase
    assert np.abs(periodic_season(spiky, 12) - periodic_season(x, 12)).max() < 0.2
    assert np.abs(seasonal_decompose(spiky, period=12).seasonal - periodic_season(x, 12)).max() > 2


@pytest.mark.parametrize(("period", "length"), [(7, 100), (24, 500), (50, 2000), (168, 3000)])
def test_period_is_found(period, length, rng):
    assert find_period(season(length, rng, period) + 0.01 * np.arange(length)) == period


def test_no_period_is_found_in_noise_or_a_line(rng):
    assert all(find_period(rng.normal(size=n)) == 1 for n in (1, 2, 5, 50, 200, 1000))
    assert find_period(np.arange(100.0)) == find_period(np.full(100, 3.0)) == 1


def test_pieces_have_medians_of_their_own(rng):
    x = np.r_[rng.normal(size=200), 50 + rng.normal(size=200)]
    x[300] -= 15
    whole = SeasonalHybridESD(period=1).fit([x[None]])
    pieces = SeasonalHybridESD(period=1, piece=200).fit([x[None]])
    assert not whole.detect(x[None])[300]
    assert np.flatnonzero(pieces.detect(x[None])).tolist() == [300]
    assert np.argmax(pieces.score(x[None])) == 300


def test_donuts_objective_equals_its_equation(rng):
    x, mean, z, at = (rng.normal(size=(3, n)) for n in (7, 7, 2, 2))
    std, spread = rng.uniform(0.5, 2, size=(3, 7)), rng.uniform(0.5, 2, size=(3, 2))
    known = rng.random((3, 7)) < 0.7
    ours = modified_elbo(
        torch.tensor(x),
        torch.tensor(known),
        torch.tensor(z),
        (torch.tensor(mean), torch.tensor(std)),
        (torch.tensor(at), torch.tensor(spread)),
    )
    for b in range(3):
        theirs = naive.modified_elbo(x[b], known[b], z[b], (mean[b], std[b]), (at[b], spread[b]))
        assert ours[b].item() == pytest.approx(theirs)


def test_donut_is_decided_by_its_seed_and_leaves_global_numbers_alone(normal):
    x = normal[None]
    before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first, again, other = (
        make("donut", epochs=3, random_state=seed).fit([x]).score(x) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other, equal_nan=True)
    assert torch.equal(before[0], torch.random.get_rng_state())
    np.testing.assert_array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002


def test_donut_scores_hardly_change_beside_a_gap(normal):
    gappy = normal.copy()
    gappy[500:503] = np.nan
    donut = make("donut").fit([normal[None, :300]])
    whole, holed = donut.score(normal[None]), donut.score(gappy[None])
    assert np.isnan(holed[500:503]).all()
    assert np.abs(whole - holed)[503:524].mean() < 0.5 * np.nanstd(whole)


def test_donut_refuses_series_shorter_than_its_window(rng):
    with pytest.raises(ValueError, match="window of 120 steps"):
        Donut().fit([rng.normal(size=(1, 100))])
    with pytest.raises(ValueError, match="window of 120 steps"):
        Donut().fit([np.full((1, 200), np.nan)])


def test_streamed_spot_scores_are_those_of_the_whole_series(rng):
    train, x = rng.normal(size=(2, 400)), rng.standard_t(3, size=(2, 60))
    x[0, 20] = x[:, 30] = np.nan
    for name in ("spot", "dspot"):
        scorer = make(name).fit([train])
        push = scorer.stream()
        np.testing.assert_array_equal([push(step) for step in x.T], scorer.score(x))


# ------------------------------------------------------------------------- what all of them share


@pytest.mark.parametrize("name", NAMES)
def test_scoring_twice_gives_the_same_and_changes_nothing(name, normal):
    x = with_spike(normal)[None]
    kept = x.copy()
    scorer = make(name).fit([x[:, :300]])
    np.testing.assert_array_equal(scorer.score(x), scorer.score(x))
    np.testing.assert_array_equal(x, kept)


@pytest.mark.parametrize("name", SHIFT_AND_SCALE)
def test_shift_and_scale_of_all_series_change_nothing(name, normal):
    x = with_spike(normal)[None]
    plain = make(name).fit([x[:, :300]]).score(x)
    moved = make(name).fit([64 * x[:, :300] + 32]).score(64 * x + 32)
    tolerance = 1e-3 if name == "donut" else 1e-6
    np.testing.assert_allclose(moved, plain, rtol=tolerance, atol=tolerance)


def test_scale_but_not_shift_leaves_the_spectral_residual_alone(normal):
    scorer = SpectralResidual().fit([normal[None]])
    plain = scorer.score(normal[None])
    np.testing.assert_allclose(scorer.score(1000 * normal[None]), plain, rtol=1e-9)
    assert not np.allclose(scorer.score(normal[None] + 1000), plain)


@pytest.mark.parametrize("name", NAMES)
def test_missing_steps_have_no_score_and_hide_nothing(name, normal, rng):
    x = with_shift(normal) if name == "luminol" else with_spike(normal)
    gappy = np.where(rng.random(600) < 0.05, np.nan, x)
    gappy[450] = x[450]
    scorer = make(name).fit([normal[None, :300]])
    scores, whole = scorer.score(gappy[None]), scorer.score(x[None])
    assert np.isnan(scores[np.isnan(gappy)]).all()
    assert abs(int(np.nanargmax(scores)) - int(np.nanargmax(whole))) <= 5
    if isinstance(scorer, ChannelDetector):
        assert not scorer.detect(gappy[None])[np.isnan(gappy)].any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [1, 2, 3, 5, 11, 12, 26])
def test_short_series_have_a_score_or_none(name, length, normal):
    scorer = make(name).fit([normal[None, :300]])
    scores = scorer.score(normal[None, :length])
    assert scores.shape == (length,)
    assert not np.isinf(scores).any()
    if isinstance(scorer, ChannelDetector):
        assert scorer.detect(normal[None, :length]).shape == (length,)


@pytest.mark.parametrize("name", ["fft", "luminol", "sr", "twitter-ad"])
@pytest.mark.parametrize("value", [0.0, 0.1, -1e9])
def test_a_constant_series_is_not_strange(name, value):
    x = np.full((1, 80), value)
    scorer = make(name).fit([x])
    assert np.nanmax(scorer.score(x)) == 0
    assert not scorer.detect(x).any()


@pytest.mark.parametrize("name", ["donut", "dspot", "spot"])
def test_a_constant_training_series_makes_another_value_strange(name):
    x = np.full((1, 80), 5.0)
    scorer = make(name).fit([x])
    scores = scorer.score(np.where(np.arange(80) == 60, 6.0, x))
    assert np.nanargmax(scores) == 60
    assert np.isfinite(scores[40:]).all()


@pytest.mark.parametrize("name", NAMES)
def test_a_series_without_values_has_no_scores(name, normal):
    scorer = make(name).fit([normal[None, :300]])
    nothing = np.full((1, 70), np.nan)
    assert np.isnan(scorer.score(nothing)).all()
    if isinstance(scorer, ChannelDetector):
        assert not scorer.detect(nothing).any()


@pytest.mark.parametrize("name", NAMES)
def test_a_spike_in_one_of_three_channels_is_found(name, rng):
    x = np.stack([season(600, rng), 1000 * season(600, rng), rng.normal(size=600)])
    strange = x.copy()
    strange[1] = with_shift(x[1] / 1000) * 1000
    strange[2] = np.nan  # a dead sensor silences nobody
    scores = make(name).fit([x[:, :300]]).score(strange)
    assert 425 <= np.nanargmax(scores) < 505


def test_one_score_is_the_largest_standardised_one_of_the_channels(rng):
    train, x = rng.normal(size=(2, 200)), rng.normal(size=(2, 150))
    alone = [FourierResidual().fit([train[d : d + 1]]) for d in range(2)]
    expected = [
        (one.score(x[d : d + 1]) - one.score(train[d : d + 1]).mean())
        / one.score(train[d : d + 1]).std()
        for d, one in enumerate(alone)
    ]
    ours = FourierResidual().fit([train]).score(x)
    np.testing.assert_allclose(ours, np.maximum(*expected))


@pytest.mark.parametrize("name", NAMES)
def test_settings_are_readable_and_copied_by_clone(name):
    scorer = make(name)
    assert clone(scorer).get_params() == scorer.get_params()


@pytest.mark.parametrize("name", NAMES)
def test_wrong_use_of_a_baseline_is_told(name, normal):
    with pytest.raises(NotFittedError):
        make(name).score(normal[None])
    scorer = make(name).fit([normal[None, :300]])
    with pytest.raises(ValueError, match="fitted on 1"):
        scorer.score(np.stack([normal, normal]))
    with pytest.raises(ValueError, match="channels first"):
        scorer.score(normal)
    with pytest.raises(ValueError, match="infinite"):
        scorer.score(np.array([[1.0, np.inf]]))
    with pytest.raises(ValueError, match="same channels"):
        make(name).fit([normal[None], np.stack([normal, normal])])
    with pytest.raises(ValueError, match="one or more series"):
        make(name).fit([])


def test_trailing_mean_is_of_the_last_values(rng):
    x = rng.normal(size=(2, 9))
    for n in (1, 3, 9, 20):
        expected = [[naive.mean_of_last(row.tolist(), t, n) for t in range(9)] for row in x]
        np.testing.assert_allclose(trailing_mean(x, n), expected)
