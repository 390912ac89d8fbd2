"""Series for the models that tests serve."""

import numpy as np


def normal_series(n=2, steps=300):
    rng = np.random.default_rng(0)
    return np.sin(np.arange(steps) / 5) + 0.1 * rng.normal(size=(n, steps))
