"""Which `scale` keeps more of the classes in an embedding: one JSON line a set, and their means.

    python benchmarks/scales.py [--sets ucr/BME ucr/UMD ...] [--steps 100] [--seeds 2]

Of sets whose training series are not standardised already, since for those nothing differs. A model
learns from the training series without labels; then each of them gets the class of its nearest
neighbour, and that which a ridge fitted on all others says. Test series are never read.
"""

import argparse
import json

import numpy as np
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from softclt import TS2Vec, load
from softclt.data.preparation import SCALES
from softclt.probes.leave_one_out import leave_one_out
from softclt.validation import Floats, Floats32, Ints

SETS = [
    "BME",
    "Chinatown",
    "DodgerLoopDay",
    "GunPointAgeSpan",
    "GunPointMaleVersusFemale",
    "GunPointOldVersusYoung",
    "PickupGestureWiimoteZ",
    "ShakeGestureWiimoteZ",
    "SmoothSubspace",
    "UMD",
]
PROBES = ("nearest", "ridge")


def accuracies(R: Floats, y: Ints) -> list[float]:
    """Of each probe, leaving one series out at a time."""
    x = StandardScaler().fit_transform(R)
    apart = ((x[:, None] - x[None]) ** 2).sum(axis=-1)
    np.fill_diagonal(apart, np.inf)
    classes = 2.0 * (y[:, None] == np.unique(y)) - 1
    said = np.unique(y)[leave_one_out(R, classes).argmax(axis=1)]
    return [float((y[apart.argmin(axis=1)] == y).mean()), float((said == y).mean())]


def embedding(X: Floats, scale: str | None, steps: int, seed: int) -> Floats32:
    """Of the series that the model has learned from."""
    small = {"output_dims": 64, "hidden_dims": 32, "depth": 6, "max_iter": steps}
    return TS2Vec(**small, scale=scale, random_state=seed).fit(X).transform(X)


def main() -> None:
    """Measure each set, then the means over sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = [*(f"ucr/{name}" for name in SETS), "uea/BasicMotions"]
    parser.add_argument("--sets", nargs="+", default=every)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    found = []
    for name in asked.sets:
        data = load(name, split="train")
        assert data.y_train is not None
        scores = {
            str(scale): np.mean(
                [
                    accuracies(embedding(data.X_train, scale, asked.steps, seed), data.y_train)
                    for seed in range(asked.seeds)
                ],
                axis=0,
            )
            for scale in SCALES
        }
        found.append(scores)
        line = {k: dict(zip(PROBES, v.round(3).tolist(), strict=True)) for k, v in scores.items()}
        print(json.dumps({"set": name, "series": len(data.X_train), **line}), flush=True)
    means = {str(scale): np.mean([one[str(scale)] for one in found], axis=0) for scale in SCALES}
    gaps = np.array([one["channel"] - one["series"] for one in found])  # (sets, probes)
    wins = {
        p: [int((g > 0).sum()), int((g < 0).sum())] for p, g in zip(PROBES, gaps.T, strict=True)
    }
    line = {k: dict(zip(PROBES, v.round(3).tolist(), strict=True)) for k, v in means.items()}
    print(json.dumps({"sets": len(found), "means": line, "channel_won_lost": wins}))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
