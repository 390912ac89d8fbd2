"""S-H-ESD, Twitter's AnomalyDetection: a robust outlier test on what a season leaves over."""

import math

import numpy as np
from scipy.stats import t as student_t

from softclt.anomaly.baselines.channels import ChannelDetector, is_flat
from softclt.anomaly.scorers import scorers
from softclt.optional import needed
from softclt.validation import Flags, Floats64, Ints, check_range

MAD_TO_STD = 1.4826  # of normal values
SHORTEST = 4
NOISE = 5.0  # standard errors that the autocorrelation of a season must exceed


@scorers.register("twitter-ad", model=False)
class SeasonalHybridESD(ChannelDetector):
    """Distance of a step to the median, in robust standard deviations, without the season.

    A periodic season is removed by STL (robust, every cycle the same); the trend stays in, only
    the median goes. Scores are ``|residual - median| / MAD``. `detect` runs the generalised ESD
    test: the largest is removed and the rest measured again, up to ``max_anomalies`` of the steps,
    and all up to the last significant one are anomalies.

    Constant series score 0, and so does one whose residual has the same value at more than half of
    the steps (MAD 0), where the original finds nothing either. Series under 4 steps score NaN.
    Shift and scale change nothing.

    Args:
        period: Steps of a season; 1 is none. None looks for it in the autocorrelation of each
            series (the original has to be told).
        max_anomalies: Largest share of the steps that `detect` may alarm at (0.1; under 0.5).
        significance: Level of the test (0.05).
        piece: Steps that are treated by themselves, for long series whose level moves (two weeks in
            the original's long-term mode); None takes the series as one.
    """

    def __init__(
        self,
        *,
        period: int | None = None,
        max_anomalies: float = 0.1,
        significance: float = 0.05,
        piece: int | None = None,
    ) -> None:
        self.period, self.piece = period, piece
        self.max_anomalies, self.significance = max_anomalies, significance

    def _score_channel(self, channel: int, x: Floats64) -> Floats64:
        if len(x) < SHORTEST:
            return np.full(len(x), np.nan)
        return np.concatenate([_robust_distance(r) for r in self._residuals(x)])

    def _detect_channel(self, channel: int, x: Floats64) -> Flags:
        check_range(self.max_anomalies, "max_anomalies", 0, 0.49)
        check_range(self.significance, "significance", 0, 1, open_low=True)
        if len(x) < SHORTEST:
            return np.zeros(len(x), bool)
        found = np.zeros(len(x), bool)
        start = 0
        for r in self._residuals(x):
            outliers = esd_outliers(r, int(self.max_anomalies * len(r)), self.significance)
            found[start + outliers] = True
            start += len(r)
        return found

    def _residuals(self, x: Floats64) -> list[Floats64]:
        """What is left of each piece without season and median."""
        if self.period is not None:
            check_range(self.period, "period", 1)
        if self.piece is not None:
            check_range(self.piece, "piece", SHORTEST)
        period = find_period(x) if self.period is None else self.period
        pieces = np.array_split(x, max(1, len(x) // self.piece)) if self.piece else [x]
        return [own - periodic_season(own, period) - np.median(own) for own in pieces]


def find_period(x: Floats64) -> int:
    """The lag at which values ``(T,)`` resemble themselves most, or 1 if none stands out.

    It is the highest peak of the autocorrelation of the values without their straight trend, behind
    its first dip below 0 and up to a third of the series, if it exceeds what noise has by chance
    (5 / sqrt(T)).
    """
    steps = np.arange(len(x))
    if len(x) < 6 or is_flat(x):
        return 1
    moved = x - np.polyval(np.polyfit(steps, x, 1), steps)
    spectrum = np.fft.rfft(moved, 2 * len(x))
    correlation = np.fft.irfft(np.abs(spectrum) ** 2)[: len(x) // 3 + 2]
    if np.abs(moved).max() <= 1e-9 * np.abs(x).max() or correlation[0] <= 0:
        return 1  # nothing but the trend
    correlation /= correlation[0]
    dips = np.flatnonzero(correlation < 0)
    if not len(dips):
        return 1
    lag = int(dips[0] + correlation[dips[0] :].argmax())
    at_end = lag == len(correlation) - 1  # it may still rise
    if at_end or correlation[lag] <= NOISE / math.sqrt(len(x)):
        return 1
    # Noise moves a broad peak by a few steps; what repeats exactly also fits after many cycles.
    even = correlation / (len(x) - np.arange(len(correlation)))  # every lag by its number of pairs
    near = range(max(2, math.ceil(0.95 * lag)), math.floor(1.05 * lag) + 1)
    return max(near, key=lambda period: float(even[period::period].mean()))


def periodic_season(x: Floats64, period: int) -> Floats64:
    """The season of values ``(T,)`` by robust STL, the same in every cycle; needs statsmodels.

    0 where there is no season, or fewer than two cycles of it.
    """
    if period < 2 or len(x) < 2 * period or is_flat(x):
        return np.zeros(len(x))
    with needed(
        "the scorer 'twitter-ad' removes seasons with statsmodels: "
        'pip install "softclt[data]", or pass period=1'
    ):
        from statsmodels.tsa.seasonal import STL
    # A window far longer than the series makes every cycle the same, which is R's "periodic".
    # The smooth parts are computed at every tenth of a window and joined by lines, as in R.
    width, tenth = 10 * len(x) + 1, math.ceil(period / 10)
    jumps = {"seasonal_jump": width, "trend_jump": tenth, "low_pass_jump": tenth}
    stl = STL(x, period=period, seasonal=width, seasonal_deg=0, robust=True, **jumps)
    season = stl.fit(inner_iter=1, outer_iter=15).seasonal
    phase = np.arange(len(x)) % period
    return np.asarray((np.bincount(phase, season) / np.bincount(phase))[phase])


def _robust_distance(r: Floats64) -> Floats64:
    distance = np.abs(r - np.median(r))
    spread = MAD_TO_STD * np.median(distance)
    flat = is_flat(r) or spread <= 1e-12 * np.abs(r).max()
    return np.zeros(len(r)) if flat else np.asarray(distance / spread)


def esd_outliers(r: Floats64, most: int, significance: float) -> Ints:
    """Indices of the outliers of values ``(n,)`` by the generalised ESD test with median and MAD.

    What is removed is always the smallest or the largest value, so that one sorted copy serves all
    rounds: the median is read off, and the median distance to it found by bisection.
    """
    order = np.argsort(r, kind="stable")
    values, first, last = r[order].tolist(), 0, len(r)
    tiny = 1e-12 * float(np.abs(r).max())
    removed, significant = [], 0
    critical = _critical_values(len(r), most, significance)
    for i in range(most):
        middle = _median(values, first, last)
        spread = MAD_TO_STD * _median_distance(values, first, last, middle)
        if spread <= tiny:
            break
        below, above = middle - values[first], values[last - 1] - middle
        if max(below, above) / spread > critical[i]:
            significant = i + 1
        if above >= below:
            last -= 1
            removed.append(order[last])
        else:
            removed.append(order[first])
            first += 1
    return np.array(removed[:significant], np.int64)


def _critical_values(n: int, most: int, significance: float) -> Floats64:
    left = n - np.arange(1, most + 1)  # values after each removal
    quantile = student_t.ppf(1 - significance / (2 * (left + 1)), left - 1)
    return np.asarray(quantile * left / np.sqrt((left - 1 + quantile**2) * (left + 1)))


def _median(values: list[float], first: int, last: int) -> float:
    n = last - first
    return (values[first + (n - 1) // 2] + values[first + n // 2]) / 2


def _median_distance(values: list[float], first: int, last: int, centre: float) -> float:
    """Median of ``|value - centre|`` over ``values[first:last]``, which are sorted."""
    n = last - first
    low, high = (_nearest(values, first, last, centre, k) for k in ((n - 1) // 2, n // 2))
    return (low + high) / 2


def _nearest(values: list[float], first: int, last: int, centre: float, k: int) -> float:
    """The distance of the k-th nearest to ``centre``, k counted from 0."""
    # The k + 1 nearest stand in a row; find where it begins.
    low, high = first, last - k - 1
    while low < high:
        start = (low + high) // 2
        if centre - values[start] > values[start + k + 1] - centre:
            low = start + 1
        else:
            high = start
    return max(centre - values[low], values[low + k] - centre)
