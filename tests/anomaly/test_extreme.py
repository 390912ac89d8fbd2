import math

import numpy as np
import pytest
from scipy.stats import expon, genpareto, norm
from scipy.stats import t as student_t

import naive
from softclt.anomaly.extreme import DSpot, GeneralisedPareto, Spot, fit_generalised_pareto


def likelihood(y, law):
    return genpareto.logpdf(y, law[0], 0, law[1]).sum()


@pytest.mark.parametrize("shape", [-0.3, 0.0, 0.1, 0.5, 1.5])
def test_pareto_fit_is_as_likely_as_scipys(shape, rng):
    y = genpareto.rvs(shape, scale=3, size=300, random_state=rng)
    c, _, scale = genpareto.fit(y, floc=0)
    ours = fit_generalised_pareto(y)
    assert likelihood(y, ours) >= likelihood(y, (c, scale)) - 1e-6
    np.testing.assert_allclose(ours, (c, scale), rtol=0.01, atol=0.01)


def test_pareto_fit_beats_its_neighbourhood_by_the_plain_likelihood(rng):
    y = genpareto.rvs(0.2, size=60, random_state=rng)
    shape, scale = fit_generalised_pareto(y)
    best = naive.pareto_log_likelihood(y, shape, scale)
    for a in (-0.02, 0, 0.02):
        for b in (0.98, 1, 1.02):
            assert naive.pareto_log_likelihood(y, shape + a, scale * b) <= best + 1e-12


def test_pareto_fit_scales_with_its_excesses(rng):
    y = rng.pareto(3, 200)
    shape, scale = fit_generalised_pareto(y)
    np.testing.assert_allclose(fit_generalised_pareto(1e6 * y), (shape, 1e6 * scale), rtol=1e-6)


@pytest.mark.parametrize("y", [[2.0], [1.0, 1.0, 1.0], [1.0, 2.0]])
def test_few_or_equal_excesses_give_a_finite_law(y):
    law = fit_generalised_pareto(np.array(y))
    assert math.isfinite(law.shape)
    assert law.scale > 0


@pytest.mark.parametrize("y", [[], [1.0, 0.0], [1.0, np.nan]])
def test_excesses_that_are_none_are_refused(y):
    with pytest.raises(ValueError, match="positive"):
        fit_generalised_pareto(np.array(y))


@pytest.mark.parametrize("shape", [-0.5, 0.0, 0.5])
def test_quantile_is_that_of_scipy(shape):
    law = GeneralisedPareto(shape, 2.0)
    assert law.quantile(0.01) == pytest.approx(genpareto.isf(0.01, shape, 0, 2.0))


def test_spot_equals_the_algorithm_as_plain_loops(rng):
    start, stream = rng.normal(size=300), rng.standard_t(3, size=300)
    alarms, limits = naive.spot_stream(start, stream, 1e-3, 0.95, fit_generalised_pareto)
    spot = Spot(risk=1e-3, level=0.95).calibrate(start)
    for value, alarm, limit in zip(stream, alarms, limits, strict=True):
        assert spot.threshold == pytest.approx(limit)
        assert spot.update(value) == alarm
    assert any(alarms)
    assert not all(alarms)


def test_dspot_equals_the_algorithm_as_plain_loops(rng):
    start, stream = rng.normal(size=60), rng.standard_t(2, size=40)
    alarms = naive.dspot_stream(list(start), stream, 1e-2, 0.9, 5, fit_generalised_pareto)
    spot = DSpot(risk=1e-2, level=0.9, depth=5).calibrate(start)
    assert [spot.update(value) for value in stream] == alarms
    assert any(alarms)


@pytest.mark.parametrize("law", [norm, expon, student_t(3)])
def test_the_calibrated_threshold_is_exceeded_about_as_often_as_the_risk(law, rng):
    spot = Spot(risk=1e-3).calibrate(law.rvs(size=20_000, random_state=rng))
    assert 0.5e-3 < law.sf(spot.threshold) < 2e-3


def test_severity_is_1_at_the_threshold_and_0_at_the_quantile(rng):
    values = rng.normal(size=1000)
    spot = Spot().calibrate(values)
    assert spot.severity(spot.threshold) == pytest.approx(1)
    assert spot.severity(np.quantile(values, 0.98)) == pytest.approx(0)


def test_thresholds_move_and_scale_with_the_values(rng):
    values = rng.normal(size=1000)
    plain = Spot(two_sided=True).calibrate(values)
    moved = Spot(two_sided=True).calibrate(100 + 7 * values)
    assert moved.threshold == pytest.approx(100 + 7 * plain.threshold)
    assert moved.lower_threshold == pytest.approx(100 + 7 * plain.lower_threshold)


def test_two_sided_spot_mirrors(rng):
    values, stream = rng.normal(size=1000), 3 * rng.normal(size=200)
    up, down = Spot(two_sided=True).calibrate(values), Spot(two_sided=True).calibrate(-values)
    assert [up.update(v) for v in stream] == [down.update(-v) for v in stream]
    assert Spot().calibrate(values).lower_threshold == -math.inf
    assert not Spot().calibrate(values).update(-100.0)


def test_an_alarm_teaches_nothing(rng):
    spot = Spot().calibrate(rng.normal(size=1000))
    before = spot.threshold
    assert all(spot.update(50.0) for _ in range(20))
    assert spot.threshold == before


def test_missing_values_are_passed_over(rng):
    values = rng.normal(size=500)
    gappy = np.insert(values, [10, 20, 20], np.nan)
    for kind in (Spot, DSpot):
        plain, other = kind().calibrate(values), kind().calibrate(gappy)
        assert not other.update(math.nan)
        assert plain.threshold == other.threshold
        assert math.isnan(other.severity(math.nan))


def test_dspot_follows_a_drift_where_spot_alarms(rng):
    drift = 0.01 * np.arange(3000) + rng.normal(size=3000)
    alarms = {
        kind: sum(map(kind().calibrate(drift[:1000]).update, drift[1000:].tolist()))
        for kind in (Spot, DSpot)
    }
    assert alarms[Spot] > 500
    assert alarms[DSpot] < 10


def test_dspot_after_a_restart_fills_its_mean_first(rng):
    spot = DSpot(depth=3).calibrate(rng.normal(size=500)).restart()
    severities = []
    for value in [1000.0, 1000.5, 999.5, 1000.0, 1100.0]:
        severities.append(spot.severity(value))
        assert spot.update(value) == (value == 1100)
    assert np.isnan(severities).tolist() == [True, True, True, False, False]


def test_stretches_are_not_carried_into_each_other(rng):
    low, high = rng.normal(size=300), 1000 + rng.normal(size=300)
    spot = DSpot().calibrate(low, high)
    assert spot.threshold < 1010
    assert spot.threshold > 1000


def test_flat_calibration_alarms_at_anything_higher():
    spot = Spot().calibrate(np.full(100, 5.0))
    assert spot.threshold == 5
    assert not spot.update(5.0)
    assert spot.update(5.1)
    assert math.isfinite(spot.severity(6.0))
    assert spot.severity(6.0) > 1


def test_kept_excesses_are_bounded(rng):
    spot = Spot(level=0.9, risk=1e-3, max_excesses=50).calibrate(rng.normal(size=1000))
    for value in rng.normal(size=200):
        spot.update(value)
    assert len(spot._tails[0].excesses) == 50
    assert spot._tails[0].n_excesses > 100
    assert 2 < spot.threshold < 6


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Spot(risk=0.05), "only if risk < 1 - level"),
        (lambda: Spot(level=1.5), "level"),
        (lambda: DSpot(depth=0), "depth"),
        (lambda: Spot().calibrate(np.full(4, np.nan)), "no values to calibrate on"),
        (lambda: Spot().calibrate(), "no values to calibrate on"),
        (lambda: DSpot().calibrate(np.arange(10.0)), "more than depth = 10"),
        (lambda: Spot().calibrate(np.zeros((2, 3))), r"\(2, 3\)"),
        (lambda: Spot().update(1.0), "calibrate"),
    ],
)
def test_wrong_use_is_told(build, message):
    with pytest.raises(ValueError, match=message):
        build()
