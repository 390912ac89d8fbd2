"""Extreme-value thresholds that learn from the stream: SPOT and DSPOT (Siffer et al., KDD 2017).

How far does a normal value go? Beyond a high quantile t, excesses follow a generalised Pareto law
whatever the values themselves follow. Its fit gives the level that a normal value exceeds with
probability ``risk``; whatever lies above is an alarm, everything else makes the fit better.
"""

import math
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import brentq

from softclt.methods.signature import with_parameters_of
from softclt.validation import Floats, Floats64, check_range

_GRID = 20  # points on each side of 0 between which roots are looked for
_NEAR_ZERO = 1e-4  # shapes closer to 0 are taken for 0: the equation drowns in rounding there
_NO_GAP = 1e-12  # stands for the gap between t and the threshold where nothing lies above t


class GeneralisedPareto(NamedTuple):
    """The law with the tail ``(1 + shape y / scale)^(-1 / shape)``; ``exp(-y / scale)`` at 0."""

    shape: float
    scale: float

    def quantile(self, tail: float) -> float:
        """The y with ``P(Y > y) = tail``."""
        if self.shape == 0:
            return -self.scale * math.log(tail)
        return self.scale / self.shape * math.expm1(-self.shape * math.log(tail))


def fit_generalised_pareto(excesses: Floats) -> GeneralisedPareto:
    """Most likely generalised Pareto law of positive excesses, by Grimshaw's trick.

    With theta = shape / scale the two likelihood equations become one, ``u(theta) v(theta) = 1``,
    whose roots lie between ``-1 / max`` and ``2 (mean - min) / min^2``. The likeliest of its roots
    and of the exponential law (shape 0) is taken. Shapes below -1 are not considered: the
    likelihood has no maximum there. Public SPOT code looks for positive roots only from
    ``2 (mean - min) / (mean min)`` on and so misses those of ordinary heavy tails; here the search
    starts next to 0.

    Example:
        >>> y = np.random.default_rng(0).pareto(4, 20_000)  # shape 1 / 4, scale 1 / 4
        >>> [round(float(p), 2) for p in fit_generalised_pareto(y)]
        [0.25, 0.25]
    """
    y = np.asarray(excesses, np.float64)
    if y.ndim != 1 or not len(y) or not (y > 0).all():
        raise ValueError(f"excesses must be positive numbers, at least one; got {excesses!r}")
    unit = float(y.mean())
    laws = [GeneralisedPareto(0.0, 1.0)]
    for theta in _roots(y / unit):
        shape = float(np.log1p(theta * y / unit).mean())
        if shape >= -1:
            laws.append(GeneralisedPareto(shape, shape / theta))
    # At a root the log-likelihood of n excesses is -n (log scale + shape + 1).
    best = min(laws, key=lambda law: math.log(law.scale) + law.shape)
    return GeneralisedPareto(best.shape, best.scale * unit)


def _roots(y: Floats64) -> list[float]:
    """Roots of Grimshaw's equation for excesses with mean 1, except the one at 0."""
    low, high = float(y.min()), float(y.max())

    def equation(theta: Floats) -> Floats64:
        z = np.asarray(theta)[..., None] * y  # (..., n)
        return np.asarray((1 / (1 + z)).mean(axis=-1) * (1 + np.log1p(z).mean(axis=-1)) - 1)

    near = _NEAR_ZERO / high
    # Close together towards the pole at -1 / max, where the equation changes quickly.
    negative = np.geomspace(1e-8 / high, (1 - _NEAR_ZERO) / high, _GRID) - 1 / high
    sides = [negative]
    furthest = min(2 * (1 - low) / max(low, 1e-150) ** 2, 1e6)  # beyond, shapes are absurd
    if furthest > near:
        sides.append(np.geomspace(near, furthest, _GRID))
    roots = []
    for grid in sides:
        above = equation(grid) > 0
        for i in np.flatnonzero(above[1:] != above[:-1]):
            roots.append(float(brentq(equation, grid[i], grid[i + 1])))
    return roots


class _Tail:
    """Everything known about the upper tail of normal values."""

    def __init__(self, values: Floats64, level: float, risk: float, kept: int | None) -> None:
        self.risk, self.n = risk, len(values)
        self.start = float(np.quantile(values, level))
        over = values[values > self.start] - self.start
        self.n_excesses = len(over)
        self.excesses = deque(over.tolist(), maxlen=kept)
        self._refit()

    def add(self, value: float) -> None:
        """Learn from one more normal value."""
        self.n += 1
        if value > self.start:
            self.n_excesses += 1
            self.excesses.append(value - self.start)
            self._refit()

    def numbers(self) -> Floats64:
        """All that it knows, for `of`."""
        return np.array([self.n, self.start, self.n_excesses, self.limit, *self.excesses])

    @classmethod
    def of(cls, numbers: Floats64, risk: float, kept: int | None) -> Self:
        """A tail that knows the same."""
        (n, start, n_excesses, limit), excesses = numbers[:4].tolist(), numbers[4:]
        if not len(excesses) <= n_excesses <= n or (excesses <= 0).any():
            raise ValueError(f"a tail with {n_excesses} excesses of {n} values")
        tail = cls.__new__(cls)
        tail.risk, tail.n, tail.start = risk, int(n), start
        tail.n_excesses, tail.limit = int(n_excesses), limit
        tail.excesses = deque(excesses.tolist(), maxlen=kept)
        return tail

    def severity(self, value: float) -> float:
        gap = self.limit - self.start or _NO_GAP * max(1.0, abs(self.start))
        return (value - self.start) / gap

    def _refit(self) -> None:
        self.limit = self.start
        if self.excesses:
            tail = self.risk * self.n / self.n_excesses
            if tail < 1:
                self.limit += fit_generalised_pareto(np.array(self.excesses)).quantile(tail)


class Spot:
    """Streaming threshold on values that have no trend (SPOT).

    Calibrated on normal values, then fed one value after the other: a value above the threshold is
    an alarm and is forgotten; one between the quantile t and the threshold makes the tail's fit
    better; any other only counts. Missing values (NaN) change nothing and are no alarm.

    Calibration without any value above its own quantile (nothing ever changes) puts the threshold
    there: whatever is higher is an alarm.

    Args:
        risk: Probability q with which a normal value exceeds the threshold (1e-4 in the authors'
            code). Must be smaller than ``1 - level``.
        level: Quantile t of the calibration values from which on the tail is modelled (0.98 in the
            paper).
        two_sided: Watch the lower tail, too (the authors' bi-SPOT).
        max_excesses: Excesses of a tail that are kept for the fit, the newest; None keeps all
            (the paper), which grow with the stream. The fewer, the more the threshold creeps down:
            what was an alarm is missing from the tail.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> spot = Spot(risk=1e-4).calibrate(rng.normal(size=5000))
        >>> 3 < spot.threshold < 5
        True
        >>> spot.update(2.0), spot.update(10.0)
        (False, True)
    """

    def __init__(
        self,
        *,
        risk: float = 1e-4,
        level: float = 0.98,
        two_sided: bool = False,
        max_excesses: int | None = None,
    ) -> None:
        check_range(level, "level", 0, 1, open_low=True)
        check_range(risk, "risk", 0, open_low=True)
        if risk >= 1 - level:
            raise ValueError(
                f"risk is {risk:g} and level {level:g}; the threshold lies beyond the quantile "
                f"only if risk < 1 - level = {1 - level:g}"
            )
        if max_excesses is not None:
            check_range(max_excesses, "max_excesses", 1)
        self.risk, self.level = risk, level
        self.two_sided, self.max_excesses = two_sided, max_excesses
        self._tails: list[_Tail] = []

    def calibrate(self, *runs: Floats) -> Self:
        """Start from normal values: one or several stretches ``(T_i,)``, each in its order."""
        values = np.concatenate([self._deviations(_observed(run)) for run in runs] or [_NOTHING])
        if not len(values):
            raise ValueError(
                f"{type(self).__name__} has no values to calibrate on: {self._needs()} are needed "
                f"in one stretch; got stretches of {[len(_observed(run)) for run in runs]} values"
            )
        self._tails = [
            _Tail(sign * values, self.level, self.risk, self.max_excesses) for sign in self._signs
        ]
        return self

    @property
    def threshold(self) -> float:
        """What the next value must exceed to be an alarm."""
        return self._centre() + self._calibrated()[0].limit

    @property
    def lower_threshold(self) -> float:
        """What the next value must stay below to be an alarm; minus infinity if one-sided."""
        tails = self._calibrated()
        return self._centre() - tails[1].limit if self.two_sided else -math.inf

    def severity(self, value: float) -> float:
        """Where the next value would lie: 0 at the quantile t, 1 at the threshold; then update."""
        deviation = value - self._centre()
        tails = zip(self._signs, self._calibrated(), strict=True)
        return max(tail.severity(sign * deviation) for sign, tail in tails)

    def update(self, value: float) -> bool:
        """Take the next value of the stream: whether it is an alarm."""
        deviation = value - self._centre()
        tails = list(zip(self._signs, self._calibrated(), strict=True))
        if any(sign * deviation > tail.limit for sign, tail in tails):
            return True
        if not math.isnan(deviation):
            for sign, tail in tails:
                tail.add(sign * deviation)
        return False

    def state(self) -> dict[str, Floats64]:
        """What it has learned, for `restore`."""
        return {f"tail{i}": tail.numbers() for i, tail in enumerate(self._calibrated())}

    def restore(self, state: Mapping[str, Floats64]) -> Self:
        """Become what another one with the same settings was."""
        self._tails = [
            _Tail.of(state[f"tail{i}"], self.risk, self.max_excesses)
            for i in range(len(self._signs))
        ]
        return self

    @property
    def _signs(self) -> tuple[int, ...]:
        return (1, -1) if self.two_sided else (1,)

    def _calibrated(self) -> list[_Tail]:
        if not self._tails:
            raise ValueError(f"call {type(self).__name__}.calibrate(values) first")
        return self._tails

    def _deviations(self, values: Floats64) -> Floats64:
        """What the tails are made of."""
        return values

    def _needs(self) -> str:
        return "1 or more"

    def _centre(self) -> float:
        """What the next value is compared with."""
        return 0.0


class DSpot(Spot):
    """SPOT on the distance to the mean of the last normal values, for streams that drift (DSPOT).

    After :meth:`restart`, the first ``depth`` values fill the mean and are no alarms; their
    severity is NaN.

    Args:
        depth: How many values the mean is of (10 in the authors' code; up to 450 in the paper).
        risk, level, two_sided, max_excesses: See `Spot`.
    """

    @with_parameters_of(Spot)
    def __init__(self, *, depth: int = 10, **parameters: Any) -> None:
        super().__init__(**parameters)
        check_range(depth, "depth", 1)
        self.depth = depth
        self._recent: deque[float] = deque(maxlen=depth)

    def restart(self) -> Self:
        """Forget the last values but not the tail: another series begins."""
        self._recent.clear()
        return self

    def calibrate(self, *runs: Floats) -> Self:
        """See `Spot.calibrate`; the stream goes on where the last stretch ends."""
        super().calibrate(*runs)
        self._recent = deque(_observed(runs[-1]).tolist(), maxlen=self.depth)
        return self

    def state(self) -> dict[str, Floats64]:
        """See `Spot.state`."""
        return super().state() | {"recent": np.array(self._recent)}

    def restore(self, state: Mapping[str, Floats64]) -> Self:
        """See `Spot.restore`."""
        self._recent = deque(state["recent"].tolist(), maxlen=self.depth)
        return super().restore(state)

    def update(self, value: float) -> bool:
        """Take the next value of the stream: whether it is an alarm."""
        alarm = super().update(value)
        if not alarm and not math.isnan(value):
            self._recent.append(float(value))
        return alarm

    def _deviations(self, values: Floats64) -> Floats64:
        if len(values) <= self.depth:
            return _NOTHING
        means = np.lib.stride_tricks.sliding_window_view(values, self.depth).mean(axis=1)
        return np.asarray(values[self.depth :] - means[:-1])

    def _needs(self) -> str:
        return f"more than depth = {self.depth}"

    def _centre(self) -> float:
        if len(self._recent) < self.depth:
            return math.nan
        return sum(self._recent) / self.depth


_NOTHING = np.empty(0)


def _observed(values: Floats) -> Floats64:
    values = np.asarray(values, np.float64)
    if values.ndim != 1:
        raise ValueError(f"values have shape {values.shape}; expected one axis, (T,)")
    return np.asarray(values[~np.isnan(values)])
