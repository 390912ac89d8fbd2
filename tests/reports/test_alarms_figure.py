"""The picture of alarms."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="figures need the `report` extra")

from softclt.reports.alarms import WatchedPanel, _thinned, alarms_figure


def panel(alarms, steps=1000, title="a", n_channels=1):
    values = np.sin(np.arange(steps) / 9) * np.ones((n_channels, 1))
    scores = np.where(np.arange(steps) < 400, np.nan, 0.1)
    times = np.datetime64("2024-01-01", "ns") + np.arange(steps) * np.timedelta64(1, "h")
    return WatchedPanel(title, times, values, scores, np.full(steps, 1.0), 400, alarms)


def titles(figure):
    return [ax.get_title(loc="left") for ax in figure.axes if ax.get_title(loc="left")]


def test_the_worst_alarms_are_drawn_from_near_once_each():
    alarms = [(450, 450, 2.0), (455, 460, 1.5), (700, 702, 3.0), (900, 900, 1.1)]
    figure = alarms_figure([panel(alarms)], "load.csv")
    assert titles(figure) == ["a: 4 alarms", "1. severity 3", "2. severity 2", "3. severity 1.1"]


def test_close_ups_of_several_series_are_named():
    figure = alarms_figure([panel([(500, 500, 1.2)]), panel([(600, 601, 5.0)], title="b")])
    assert titles(figure) == ["b: 1 alarm", "1. severity 5 · b", "2. severity 1.2 · a"]


def test_without_alarms_the_series_stands_alone():
    figure = alarms_figure([panel([], n_channels=3)])
    assert titles(figure) == ["a: 0 alarms"]
    assert len(figure.axes) == 2


def test_a_long_curve_keeps_its_peaks(rng):
    values = rng.normal(size=100_001)
    values[[777, 100_000]] = 50.0, -50.0
    times, kept = _thinned(np.arange(100_001), values)
    assert len(kept) < 5000
    assert set(times[np.abs(kept) == 50.0]) == {777, 100_000}
    assert (np.diff(times) >= 0).all()
