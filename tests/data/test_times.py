"""Times: calendar features, regular or not, and the steps that follow."""

import numpy as np
import pandas as pd
import pytest

from softclt.data.times import check_times, future_times, in_gaps, median_gap
from softclt.forecasting import CALENDAR, calendar_features

HOURS = pd.date_range("2024-02-28 22:00", periods=6, freq="h").to_numpy()


def test_calendar_features_are_what_a_date_says_of_itself():
    times = pd.date_range("2019-12-28 23:45", periods=500, freq="97min")
    features = calendar_features(times.to_numpy())
    assert features.shape == (len(CALENDAR), 500)
    for k, date in enumerate(times.to_pydatetime()):
        expected = [
            date.minute,
            date.hour,
            date.weekday(),
            date.day,
            date.timetuple().tm_yday,
            date.month,
            date.isocalendar().week,
        ]
        assert features[:, k].tolist() == expected


def test_each_series_has_features_of_its_own_and_none_where_it_has_ended():
    times = np.stack([HOURS, HOURS + np.timedelta64(5, "m")])
    times[1, 4:] = np.datetime64("NaT")
    features = calendar_features(times)
    assert features.shape == (2, 7, 6)
    np.testing.assert_array_equal(features[0], calendar_features(HOURS))
    assert np.isnan(features[1, :, 4:]).all()
    assert (features[1, 0, :4] == 5).all()


def test_dates_go_on_by_their_calendar_or_by_the_usual_gap():
    np.testing.assert_array_equal(future_times(HOURS, 2), HOURS[-1] + np.array([1, 2], "m8[h]"))
    friday = pd.bdate_range("2024-05-20", "2024-05-31").to_numpy()
    assert future_times(friday, 1)[0] == np.datetime64("2024-06-03")
    uneven = HOURS + np.array([0, 0, 0, 10, 0, 0], "m8[m]")
    assert future_times(uneven, 1)[0] - uneven[-1] == np.timedelta64(1, "h")
    np.testing.assert_array_equal(future_times(np.array([1.0, 3.0, 5.0]), 2), [7.0, 9.0])


def test_times_are_counted_in_the_usual_gap_of_all_series():
    times = np.array([[10.0, 12.0, 14.0, 99.0], [0.0, 2.0, 7.0, 9.0]])
    found = in_gaps(times, np.array([3, 4]))
    np.testing.assert_array_equal(found[0, :3], [0, 1, 2])
    np.testing.assert_array_equal(found[1], [0, 1, 3.5, 4.5])
    assert median_gap(np.array([0.0, 1.0, 2.5, 3.5, 9.0])) == 1.25


def test_a_large_offset_costs_no_digits():
    times = np.datetime64("2024-01-01", "ns") + np.arange(5) * np.timedelta64(1, "us")
    assert median_gap(times) == 1000.0


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (HOURS[::-1], "step 1 of series 0 .* is earlier than"),
        (HOURS[[0, 1, 1, 2, 3, 4]], "step 2 of series 0 .* has the time of"),
        (HOURS[:5], "expected"),
        (np.array([0, 1, 2, np.nan, 4, 5]), "step 3 of series 0 has no time"),
        (["soon"] * 6, "no dates"),
    ],
)
def test_times_that_do_not_grow_are_refused(times, message):
    with pytest.raises(ValueError, match=message):
        check_times(times, np.array([6]), 6)


def test_what_is_behind_the_end_of_a_series_does_not_matter():
    times = np.stack([HOURS, HOURS])
    times[1, 3:] = np.datetime64("NaT")
    assert check_times(times, np.array([6, 3]), 6).shape == (2, 6)
    assert check_times([str(t) for t in HOURS], np.array([6, 6]), 6).dtype.kind == "M"
