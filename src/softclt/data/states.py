"""Long series that pass through states, with the state of every step; and TNC's simulation."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from softclt.data.catalog import datasets
from softclt.data.dataset import Dataset, fingerprint
from softclt.data.errors import DataError
from softclt.validation import Floats, Floats64, Ints, check_random_state_seed, check_range

N_STATES = 4
STAYS = 0.85  # probability; each of the other three states has 0.05
NOISE = 0.3  # of every signal
GP_VARIANCE, GP_LENGTH, GP_PERIOD = 0.1, 1.0, 5.0
DRIVEN_BELOW = 0.5  # what drives a NARMA process is even between 0 and this
# Of NARMA processes: coefficients, and the values that they begin with, as many as the order.
NARMA_5 = (0.3, 0.05, 1.5, 0.1), (0.671, 0.682, 0.675, 0.687, 0.69)
NARMA_3 = (0.1, 0.25, 2.5, -0.005), (1.0, 0.97, 0.96)


@dataclass(eq=False, repr=False)
class StateData(Dataset):
    """Series with a state at every step.

    Attributes:
        states_train: Of the steps of ``X_train``, ``(N, T)``, numbers from 0.
        states_test: Of those of ``X_test``.
    """

    states_train: Ints | None = None
    states_test: Ints | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for part in ("train", "test"):
            X, states = getattr(self, f"X_{part}"), getattr(self, f"states_{part}")
            if X is None:
                setattr(self, f"states_{part}", None)
            elif np.shape(states) != (len(X), X.shape[2]):
                raise DataError(
                    f"states_{part} has the shape {np.shape(states)}; expected a state for each "
                    f"step, {(len(X), X.shape[2])}"
                )

    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits that change when a shape, a value or a state does."""
        parts = [self.X_train, self.X_test, self.states_train, self.states_test]
        return fingerprint(*(part for part in parts if part is not None))

    def __repr__(self) -> str:
        name = self.meta["name"] or "arrays"
        return f"StateData({name}: {len(self.X_train)} series of {self.X_train.shape[2]} steps)"


@datasets.register("synthetic/states", ragged=False)
def simulated_states(
    n_series: int = 500,
    length: int = 2000,
    segment: int = 50,
    test_share: float = 0.2,
    random_state: Any = 0,
) -> StateData:
    """The simulation of TNC's paper: three signals of a process that moves between four states.

    Every ``segment`` steps the process stays in its state with probability 0.85, or moves to any
    other. A state is a process of its own: a Gaussian process with period 5, NARMA of order 5, a
    Gaussian process with a squared exponential kernel, and NARMA of order 3; noise is added. The
    first signal is that of the state, the second 0.9 times the first with more noise, and the third
    that of the state two further on. As the source has it, each segment begins anew.

    Args:
        n_series: Series in both parts.
        length: Steps of each; a multiple of ``segment``.
        segment: Steps between two moves.
        test_share: Share of the series in the test part.
        random_state: Seed; equal seeds give equal data sets.
    """
    check_range(n_series, "n_series", 2)
    check_range(segment, "segment", max(len(NARMA_5[1]), len(NARMA_3[1])))
    check_range(length, "length", segment)
    check_range(test_share, "test_share", 0.0, 1.0, open_low=True)
    if length % segment:
        raise ValueError(f"length is {length}; expected a multiple of segment, {segment}")
    rng = np.random.default_rng(check_random_state_seed(random_state))
    of_segment = _chain(n_series, length // segment, rng)  # (N, segments)
    first = _signals(of_segment.ravel(), segment, rng)
    second = 0.9 * first + 0.03 + 0.4 * rng.normal(size=first.shape)
    third = _signals((of_segment.ravel() + 2) % N_STATES, segment, rng)
    X = np.stack([own.reshape(n_series, length) for own in (first, second, third)], axis=1)
    of_step = np.repeat(of_segment, segment, axis=1)  # (N, T)
    n_test = min(n_series - 1, max(1, round(test_share * n_series)))
    n_train = n_series - n_test
    meta = {
        "name": "synthetic/states",
        "archive": "synthetic",
        "source": "softclt.data.states.simulated_states",
    }
    return StateData(
        X_train=X[:n_train],
        X_test=X[n_train:],
        meta=meta,
        states_train=of_step[:n_train],
        states_test=of_step[n_train:],
    )


def _chain(n_series: int, n_segments: int, rng: np.random.Generator) -> Ints:
    """States ``(N, segments)``; the first is any."""
    chain = np.empty((n_series, n_segments), np.int64)
    chain[:, 0] = rng.integers(N_STATES, size=n_series)
    for k in range(1, n_segments):
        moves = rng.random(n_series) >= STAYS
        chain[:, k] = (chain[:, k - 1] + moves * rng.integers(1, N_STATES, n_series)) % N_STATES
    return chain


def _signals(of_segment: Ints, n_steps: int, rng: np.random.Generator) -> Floats64:
    """A signal ``(S, n_steps)`` for each state ``(S,)``."""
    x = np.empty((len(of_segment), n_steps))
    for state in range(N_STATES):
        rows = np.flatnonzero(of_segment == state)
        if state % 2 == 0:
            x[rows] = _gaussian_process(len(rows), n_steps, state == 0, rng)
        else:
            kind = NARMA_5 if state == 1 else NARMA_3
            x[rows] = _narma(len(rows), n_steps, kind[0], kind[1], rng)
    return x + NOISE * rng.normal(size=x.shape)


def _gaussian_process(n: int, n_steps: int, periodic: bool, rng: np.random.Generator) -> Floats64:
    """Draws ``(n, n_steps)``, one time unit a step."""
    lags = np.subtract.outer(np.arange(n_steps), np.arange(n_steps)).astype(float)
    if periodic:
        gaps = 2 * (np.sin(np.pi * lags / GP_PERIOD) / GP_LENGTH) ** 2
    else:
        gaps = (lags / GP_LENGTH) ** 2 / 2
    values, vectors = np.linalg.eigh(GP_VARIANCE * np.exp(-gaps))  # a periodic one is singular
    root = vectors * np.sqrt(np.maximum(values, 0))
    drawn: Floats64 = rng.normal(size=(n, n_steps)) @ root.T
    return drawn


def _narma(
    n: int,
    n_steps: int,
    coefficients: tuple[float, ...],
    begins: tuple[float, ...],
    rng: np.random.Generator,
) -> Floats64:
    """Nonlinear autoregressive moving averages ``(n, n_steps)`` behind the values that begin them.

    The sum of earlier values is over those of the beginning alone, as in the package that TNC's
    series were made with; over all, NARMA_3 grows beyond all bounds in four of ten segments.
    """
    order, (a, b, c, d) = len(begins), coefficients
    driven = rng.uniform(0, DRIVEN_BELOW, size=(n, order + n_steps))
    y = np.empty((n, order + n_steps))
    y[:, :order] = begins
    for t in range(order, order + n_steps):
        last, recent = y[:, t - 1], y[:, t - order : order].sum(axis=1)
        y[:, t] = a * last + b * last * recent + c * driven[:, t - order] * driven[:, t] + d
    return y[:, order:]


def windows_of(X: Floats, of_step: Ints, window: int) -> tuple[Floats, Ints]:
    """Series cut into windows that do not overlap ``(N', D, window)``, and the state of each.

    A window has the state of most of its steps, the lowest of several; what is left at the end of a
    series is no window.
    """
    n, d, t = X.shape
    check_range(window, "window", 1, t)
    k = t // window
    cut = X[..., : k * window].reshape(n, d, k, window).swapaxes(1, 2).reshape(n * k, d, window)
    own = of_step[:, : k * window].reshape(n * k, window)
    counts = (own[:, :, None] == np.arange(own.max() + 1)).sum(axis=1)
    return cut, counts.argmax(axis=1)
