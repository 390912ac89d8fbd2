"""Synthetic series of many kinds, to learn from without any real one."""

from typing import Any

import numpy as np

from softclt.validation import Floats32, Floats64, check_range

Floats = Floats64

_AT_ONCE = 256  # series that are made together: bounds the memory of the kernels


def synthetic_series(n_series: int, length: int = 256, *, random_state: int = 0) -> Floats32:
    """Series ``(N, 1, T)``, each standardised: the same seed gives the same ones.

    Each is a sum of one to three parts drawn from: Gaussian processes (smooth, rough, periodic,
    products of two), noise with a power-law spectrum, waves with chirps and envelopes, bumps and
    bursts, steps and regimes, trends, and motifs that come again like heart beats.

    Args:
        n_series: How many.
        length: Steps of each.
        random_state: Seed.

    Example:
        >>> synthetic_series(3, 64, random_state=0).shape
        (3, 1, 64)
    """
    check_range(n_series, "n_series", 0)
    check_range(length, "length", 8)
    parts = [
        _some(min(_AT_ONCE, n_series - start), length, np.random.default_rng((random_state, start)))
        for start in range(0, n_series, _AT_ONCE)
    ]
    return np.concatenate([np.empty((0, 1, length), np.float32), *parts])


def _some(n: int, t: int, rng: np.random.Generator) -> Floats32:
    makers: list[Any] = [_processes, _power_law, _waves, _bumps, _steps, _motifs]
    parts = np.stack([_standard(make(n, t, rng)) for make in makers], axis=1)  # (N, kinds, T)
    shares = rng.dirichlet(np.full(len(makers), 0.35), n) * (rng.random((n, len(makers))) < 0.6)
    alone = rng.integers(len(makers), size=n)
    shares[np.arange(n), alone] += 0.3  # no series without any part
    x = np.einsum("nk,nkt->nt", shares, parts)
    x += rng.exponential(0.3, (n, 1)) * np.linspace(-1, 1, t) * rng.choice([-1, 0, 1], (n, 1))
    x += rng.exponential(0.05, (n, 1)) * rng.normal(size=(n, t))
    return _standard(x)[:, None].astype(np.float32)


def _standard(x: Floats) -> Floats:
    x = x - x.mean(axis=-1, keepdims=True)
    return np.asarray(x / np.maximum(x.std(axis=-1, keepdims=True), 1e-9))


def _processes(n: int, t: int, rng: np.random.Generator) -> Floats:
    """Gaussian processes: a kernel, or the sum or the product of two, by its circulant form."""
    lags = np.minimum(np.arange(2 * t), 2 * t - np.arange(2 * t)) / t  # (2 T,)

    def kernel() -> Floats:
        size = np.exp(rng.uniform(np.log(0.01), np.log(0.5), (n, 1)))
        period = np.exp(rng.uniform(np.log(0.02), np.log(0.5), (n, 1)))
        kinds = [
            np.exp(-((lags / size) ** 2) / 2),
            np.exp(-lags / size),
            (1 + (lags / size) ** 2) ** -0.5,
            np.exp(-2 * np.sin(np.pi * lags / period) ** 2),
        ]
        choice = rng.integers(len(kinds), size=n)
        return np.asarray(np.stack(kinds, axis=1)[np.arange(n), choice])  # (N, 2 T)

    one, two = kernel(), kernel()
    how = rng.integers(3, size=(n, 1))
    both = np.where(how == 0, one, np.where(how == 1, one + two, one * two))
    # Where a kernel does not fall to zero within the circle, its spectrum is cut off at zero.
    spread = np.sqrt(np.maximum(np.fft.rfft(both).real, 0.0))
    noise = np.fft.rfft(rng.normal(size=(n, 2 * t)))
    return np.fft.irfft(spread * noise, 2 * t)[:, :t]


def _power_law(n: int, t: int, rng: np.random.Generator) -> Floats:
    frequencies = np.arange(1, t // 2 + 1)
    exponent = rng.uniform(0, 3.5, (n, 1))
    spectrum = np.zeros((n, t // 2 + 1), dtype=complex)
    noise = rng.normal(size=(2, n, t // 2))
    spectrum[:, 1:] = (noise[0] + 1j * noise[1]) * frequencies ** (-exponent / 2)
    return np.fft.irfft(spectrum, t)


def _waves(n: int, t: int, rng: np.random.Generator) -> Floats:
    """Up to three waves of four forms, with changing speed and strength."""
    x, s = np.zeros((n, t)), np.linspace(0, 1, t)
    for k in range(3):
        cycles = np.exp(rng.uniform(np.log(0.5), np.log(t / 8), (n, 1)))
        chirp = rng.normal(0, 0.3, (n, 1)) * (rng.random((n, 1)) < 0.4)
        phase = cycles * (s + chirp * s * (s - 1)) + rng.random((n, 1))
        turn = phase % 1
        width = rng.uniform(0.05, 0.5, (n, 1))
        forms = np.stack(
            [np.sin(2 * np.pi * phase), np.sign(turn - width), 2 * turn - 1, turn < width], axis=1
        )
        wave = forms[np.arange(n), rng.integers(4, size=n)]
        centre, spread = rng.random((n, 1)), np.exp(rng.uniform(np.log(0.05), 1, (n, 1)))
        envelope = np.exp(-(((s - centre) / spread) ** 2) / 2)
        wave = np.where(rng.random((n, 1)) < 0.4, wave * envelope, wave)
        x += wave * rng.exponential(1.0, (n, 1)) * (rng.random((n, 1)) < (1.0, 0.5, 0.25)[k])
    return x


def _bumps(n: int, t: int, rng: np.random.Generator) -> Floats:
    """Bumps of either sign, and bursts of noise."""
    x, s = np.zeros((n, t)), np.linspace(0, 1, t)
    for k in range(5):
        centre, width = rng.random((n, 1)), np.exp(rng.uniform(np.log(0.005), np.log(0.2), (n, 1)))
        shape = (s - centre) / width
        bump = np.where(rng.random((n, 1)) < 0.5, np.exp(-(shape**2) / 2), np.exp(-np.abs(shape)))
        bump = np.where(rng.random((n, 1)) < 0.2, bump * rng.normal(size=(n, t)), bump)
        x += bump * rng.normal(0, 1, (n, 1)) * (rng.random((n, 1)) < 0.8**k)
    return x


def _steps(n: int, t: int, rng: np.random.Generator) -> Floats:
    """Levels that change, and regimes of different roughness."""
    change = rng.random((n, t)) < np.exp(
        rng.uniform(np.log(1 / t), np.log(max(0.05, 2 / t)), (n, 1))
    )
    levels = np.cumsum(change * rng.normal(size=(n, t)), axis=1)
    regime = np.cumsum(change, axis=1) % 2
    rough = rng.normal(size=(n, t)) * rng.exponential(0.3, (n, 1))
    return np.asarray(levels + np.where(rng.random((n, 1)) < 0.5, regime * rough, 0.0))


def _motifs(n: int, t: int, rng: np.random.Generator) -> Floats:
    """A short motif of a few bumps that comes again and again, almost evenly."""
    s, x = np.arange(t), np.zeros((n, t))
    period = np.exp(rng.uniform(np.log(t / 16), np.log(t), (n, 1)))
    drift = np.cumsum(rng.normal(0, 0.002, (n, t)), axis=1)
    turn = (s / period + drift + rng.random((n, 1))) % 1
    for _ in range(4):
        centre, width = rng.random((n, 1)), np.exp(rng.uniform(np.log(0.01), np.log(0.15), (n, 1)))
        gap = np.abs(turn - centre)
        gap = np.minimum(gap, 1 - gap)
        x += rng.normal(size=(n, 1)) * np.exp(-((gap / width) ** 2) / 2)
    return x
