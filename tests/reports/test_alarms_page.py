"""The page of alarms in a browser: curves, zooming by mouse, by key and by alarm."""

import numpy as np
import pytest

from softclt.reports.alarms import WatchedPanel
from softclt.reports.alarms_page import _thinned, alarms_page

T = 400


def panel(title, alarms, rng):
    values = np.sin(np.arange(T) / 5)[None] + 0.1 * rng.normal(size=(1, T))
    values[0, 50:60] = np.nan
    scores = np.r_[np.full(200, np.nan), rng.random(200)]
    times = np.datetime64("2024-01-01") + np.arange(T).astype("timedelta64[h]")
    levels = np.full(T, np.inf)
    levels[200:] = 0.9
    return WatchedPanel(title, times, values, scores, levels, 200, alarms, ["load"])


@pytest.fixture
def page(rng, tmp_path):
    pytest.importorskip("jinja2", reason="pages need the `report` extra")
    panels = [
        panel("calm", [], rng),
        panel("</script><b>odd", [(250, 255, 2.5), (300, 300, 1.2)], rng),
    ]
    path = tmp_path / "alarms.html"
    path.write_text(alarms_page(panels, "load.csv", facts="2 alarms."), encoding="utf-8")
    return path


@pytest.mark.slow
def test_a_panel_zooms_by_dragging_by_keys_and_by_its_alarms(browser, page):
    with browser.open(page, width=900) as tab:
        assert tab.evaluate("panels.length") == 2
        assert tab.evaluate("document.querySelector('h2').textContent") == (
            "</script><b>odd: 2 alarms"
        )
        assert tab.evaluate("panels[0].n") == T
        assert tab.evaluate("[panels[0].first, panels[0].last]") == [0, T - 1]
        tab.click("section:nth-of-type(1) li:nth-of-type(1) button")
        assert tab.evaluate("[panels[0].first, panels[0].last]") == [130, 375]
        tab.evaluate("panels[0].canvas.focus()")
        tab.evaluate("panels[0].canvas.dispatchEvent(new KeyboardEvent('keydown', {key: '0'}))")
        assert tab.evaluate("panels[0].last - panels[0].first") == T - 1
        tab.evaluate(
            "for (const [kind, at] of [['pointerdown', 0.25], ['pointermove', 0.5]]) {"
            "  const box = panels[0].canvas.getBoundingClientRect();"
            "  panels[0].canvas.setPointerCapture = () => {};"
            "  panels[0].canvas.dispatchEvent(new PointerEvent(kind, {pointerId: 1,"
            "    clientX: box.left + at * box.width, clientY: box.top + 20})); }"
            "panels[0].canvas.dispatchEvent(new PointerEvent('pointerup', {pointerId: 1,"
            "  clientX: panels[0].canvas.getBoundingClientRect().left"
            "    + 0.5 * panels[0].canvas.clientWidth, clientY: 30}))"
        )
        first, last = tab.evaluate("[panels[0].first, panels[0].last]")
        assert abs(first - 100) <= 2
        assert abs(last - 200) <= 2
        assert "2024-01-05" in tab.evaluate("panels[0].range.textContent")
        painted = tab.evaluate(
            "(() => { const c = panels[1].canvas; return c.getContext('2d')"
            ".getImageData(0, 0, c.width, c.height).data.some((v) => v > 0); })()"
        )
        assert painted
        tab.assert_quiet()


def test_thinning_loses_no_peak(rng):
    line = rng.normal(size=103)
    line[7], line[20:30] = 50.0, np.nan
    thin = _thinned(line, 10)
    assert len(thin) == 22
    assert np.nanmax(thin) == 50.0
    assert np.nanmin(thin) == np.nanmin(line)
    assert np.isnan(thin[4:6]).all()
    np.testing.assert_array_equal(_thinned(line, 1), line)
