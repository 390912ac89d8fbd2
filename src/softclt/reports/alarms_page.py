"""A page of alarms: a panel a series to zoom into, one HTML file that needs no network."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softclt.optional import needed
from softclt.plaintext import visible
from softclt.reports.alarms import WatchedPanel
from softclt.reports.packing import to_base64
from softclt.validation import Floats

MOST_NUMBERS = 3_000_000  # of all series together
MOST_PANELS = 50
_CHANNELS = 6  # that are drawn


def alarms_page(
    panels: Sequence[WatchedPanel],
    heading: str,
    written: Callable[[NDArray[Any]], Sequence[Any]] = list,
    facts: str = "",
) -> str:
    """The page as text, the series with the worst alarm first.

    Series too long for it are thinned to the lowest and highest value of each short stretch.

    Args:
        panels: All watched series; the first 50 by severity are drawn.
        heading: Above all.
        written: Times as they are to be read.
        facts: A sentence below the heading.
    """
    worst = [max((alarm[2] for alarm in panel.alarms), default=0.0) for panel in panels]
    order = np.argsort(-np.array(worst), kind="stable")[:MOST_PANELS]
    chosen = [panels[i] for i in order]
    rows = sum(len(one.times) * (min(_CHANNELS, len(one.values)) + 2) for one in chosen)
    stretch = max(1, -(-2 * rows // MOST_NUMBERS)) if rows > MOST_NUMBERS else 1
    data = [_panel(one, stretch, written) for one in chosen]
    with needed("the page needs jinja2: pip install 'softclt[report]'"):
        from jinja2 import Environment, FileSystemLoader
    templates = Environment(loader=FileSystemLoader(Path(__file__).parent), autoescape=True)
    # Inside a script element "<" could end it; as an escape it is the same JSON.
    text = json.dumps(data, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    page = templates.get_template("alarms_page.html.j2")
    left_out = len(panels) - len(chosen)
    return visible(page.render(heading=heading, facts=facts, left_out=left_out, data=text))


def _panel(
    panel: WatchedPanel, stretch: int, written: Callable[[NDArray[Any]], Sequence[Any]]
) -> dict[str, Any]:
    lines = [*panel.values[:_CHANNELS], panel.scores, panel.levels]
    kept = [_thinned(np.where(np.isfinite(line), line, np.nan), stretch) for line in lines]
    points = len(kept[0])
    steps = np.minimum(
        np.arange(points) * stretch // (2 if stretch > 1 else 1), len(panel.times) - 1
    )
    names = [*panel.channels[:_CHANNELS]]
    names += [f"channel {d + 1}" for d in range(len(names), min(_CHANNELS, len(panel.values)))]
    return {
        "title": panel.title,
        "names": names,
        "times": [str(time) for time in written(panel.times[steps])],
        "lines": [to_base64(line, "<f4") for line in kept],
        "start": int(np.searchsorted(steps, panel.start)),
        "alarms": [
            [int(np.searchsorted(steps, first)), int(np.searchsorted(steps, last)), severity]
            for first, last, severity in panel.alarms
        ],
    }


def _thinned(line: Floats, stretch: int) -> Floats:
    """The lowest and the highest value of each stretch; all values where it is one step."""
    if stretch == 1:
        return line
    padded = np.pad(line, (0, -len(line) % stretch), constant_values=np.nan)
    blocks = padded.reshape(-1, stretch)
    missing = np.asarray(np.isnan(blocks).all(axis=1))
    low = np.where(np.isnan(blocks), np.inf, blocks).min(axis=1)
    high = np.where(np.isnan(blocks), -np.inf, blocks).max(axis=1)
    pairs = np.where(missing[:, None], np.nan, np.stack([low, high], axis=1))
    return np.asarray(pairs.reshape(-1))
