"""Are probabilities of classifiers as often right as they say?

    python benchmarks/calibration.py lines.jsonl [--sets ucr/GunPoint ...] [--picture FILE.png]

Each row learns from the training part and says how likely each class is for the test part. The row
softclt is calibrated by left-out decisions, ridge is the same without: the softmax of its decisions
as they are. A line a data set and row: accuracy, expected calibration error and the bins behind it,
which the picture adds up over data sets, each data set counting by its size.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from softclt.classification import Reliability, SeriesClassifier, classifiers, reliability
from softclt.classification.calibration import Calibration
from softclt.data import load
from softclt.files import append_lines, json_lines
from softclt.reports.figures.style import COLOURS, MARKERS, new_figure, save_figure, style

SETS = (
    *("ucr/ArrowHead", "ucr/BME", "ucr/DistalPhalanxOutlineAgeGroup", "ucr/DistalPhalanxTW"),
    *("ucr/ECG200", "ucr/Ham", "ucr/ItalyPowerDemand", "ucr/MiddlePhalanxOutlineAgeGroup"),
    *("ucr/ProximalPhalanxOutlineAgeGroup", "ucr/ToeSegmentation2", "ucr/UMD", "ucr/Wine"),
)
PEERS = {"minirocket": "minirocket", "quant": "quant"}


def main() -> None:
    """Write the lines that are missing; draw them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("lines", type=Path)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    there = options.lines.read_text().splitlines() if options.lines.exists() else []
    done = {json.loads(line)["data"] for line in there}
    for name in options.sets:
        if name not in done:
            append_lines(options.lines, json_lines(told(name)))
    lines = [json.loads(line) for line in options.lines.read_text().splitlines()]
    for row in dict.fromkeys(line["row"] for line in lines):
        own = [line for line in lines if line["row"] == row]
        means = {key: round(float(np.mean([one[key] for one in own])), 4) for key in _MEANS}
        print(json.dumps({"row": row, "sets": len(own), **means, "pooled": _pooled(own).ece}))
    if options.picture is not None:
        save_figure(picture(lines), options.picture)


_MEANS = ("accuracy", "calibration_error")


def told(name: str) -> list[dict[str, Any]]:
    """The lines of a data set."""
    data = load(name)
    assert data.X_test is not None
    assert data.y_test is not None
    ours = SeriesClassifier(random_state=0).fit(data.X_train, data.y_train)
    found = {"softclt": ours.predict_proba(data.X_test)}
    ours._calibration = Calibration(1.0, np.zeros(len(ours.classes_)))
    found["ridge"] = ours.predict_proba(data.X_test)
    for row, method in PEERS.items():
        peer: Any = classifiers[method](random_state=0).fit(data.X_train, data.y_train)
        found[row] = peer.predict_proba(data.X_test)
    codes = np.searchsorted(ours.classes_, data.y_test)
    lines = []
    for row, likely in found.items():
        bins = reliability(likely, codes)
        line: dict[str, Any] = {"benchmark": "calibration", "data": name, "row": row}
        line["accuracy"] = float((likely.argmax(axis=1) == codes).mean())
        line |= {"calibration_error": bins.ece, "counts": bins.counts.tolist()}
        sums = np.nan_to_num(np.stack([bins.confidence, bins.accuracy])) * bins.counts
        lines.append(line | {"confidence": sums[0].tolist(), "right": sums[1].tolist()})
    return lines


def _pooled(lines: Sequence[dict[str, Any]]) -> Reliability:
    """The bins of all data sets."""
    counts, sure, right = (
        np.sum([line[key] for line in lines], axis=0) for key in ("counts", "confidence", "right")
    )
    with np.errstate(invalid="ignore"):
        return Reliability(counts, sure / counts, right / counts)


@style()
def picture(lines: Sequence[dict[str, Any]]) -> Any:
    """Share that is right against confidence, a line a row."""
    figure = new_figure(3.8, 3.6)
    ax = figure.subplots()
    ax.plot([0, 100], [0, 100], color="#000000", linewidth=0.8, alpha=0.5)
    for i, row in enumerate(dict.fromkeys(line["row"] for line in lines)):
        bins = _pooled([line for line in lines if line["row"] == row])
        some = bins.counts >= 10
        sure, right = 100 * bins.confidence[some], 100 * bins.accuracy[some]
        ax.plot(sure, right, color=COLOURS[i], marker=MARKERS[i], label=row)
    ax.set(xlabel="confidence, %", ylabel="right, %", xlim=(30, 103), ylim=(20, 103))
    ax.legend(loc="upper left")
    return figure


if __name__ == "__main__":
    main()
