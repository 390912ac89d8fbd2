"""The picture of forecasts."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="pictures need the `report` extra")

from softclt.reports.figures import save_figure
from softclt.reports.forecasts import MOST_PANELS, ForecastPanel, forecast_figure


def panel(title="load", dates=True, **more):
    steps = np.arange(60)
    times = np.datetime64("2024-01-01") + steps * np.timedelta64(1, "h") if dates else steps
    values = np.sin(steps / 4)
    return ForecastPanel(title, times[:48], values[:48], times[48:], values[48:], **more)


def test_history_forecast_and_band_are_drawn_in_the_colours_of_the_legend(tmp_path):
    band = {"lower": np.full(12, -1.0), "upper": np.full(12, 1.0)}
    figure = forecast_figure([panel(**band, truth=np.zeros(12))], coverage=0.8, heading="mine")
    (ax,) = figure.axes
    assert len(ax.lines) == 4  # history, what came, forecast, where it begins
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.texts]
    assert words == ["history", "came", "80% interval", "forecast"]
    save_figure(figure, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 5000


def test_a_forecast_starts_at_the_last_known_value():
    steps = np.arange(10.0)
    values = np.array([1.0, 2.0, 3.0, np.nan, 5.0])
    shown = ForecastPanel("x", steps[:5], values, steps[5:], np.full(5, 9.0))
    line = forecast_figure([shown]).axes[0].lines[1]
    np.testing.assert_array_equal(line.get_xdata(), steps[4:])
    np.testing.assert_array_equal(line.get_ydata(), [5, 9, 9, 9, 9, 9])


def test_more_panels_than_fit_are_counted_not_drawn():
    figure = forecast_figure([panel(str(i), dates=False) for i in range(MOST_PANELS + 3)])
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == [str(i) for i in range(MOST_PANELS)]
    assert "3 more are in the table" in figure.get_suptitle()
