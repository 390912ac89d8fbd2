"""One channel's forecasts: a ridge that reads embeddings and the channel's own last values."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from softclt.forecasting.ridge import Errors, RidgeSums
from softclt.forecasting.samples import Rows, carry_forward, interpolate
from softclt.validation import Floats

CALIBRATION_ROWS = 2000  # of the validation part, whose errors are kept for intervals
_BLOCK = 1 << 22  # numbers of a design, or targets, at a time


@dataclass(frozen=True)
class Embedded:
    """Rows with the embeddings ``(R, M)`` of their steps."""

    rows: Rows
    Z: Floats

    def some(self, most: int) -> "Embedded":
        """At most so many rows, evenly spread."""
        picked = self.rows.spread(most)
        return Embedded(self.rows.take(picked), self.Z[picked])

    def blocks(self, width: int) -> Iterator["Embedded"]:
        """Some rows after the other, for work on arrays of a width."""
        size = max(1, _BLOCK // max(1, width))
        for start in range(0, len(self.rows), size):
            part = np.arange(start, min(start + size, len(self.rows)))
            yield Embedded(self.rows.take(part), self.Z[part])


@dataclass(frozen=True)
class ChannelForecast:
    """What one channel's ridge says, all in units of scaled values.

    Attributes:
        ahead: Forecasts ``(N, H)``.
        alpha: The penalty that was chosen.
        mae: Mean absolute error on the validation part.
        errors: Absolute errors ``(H, rows)`` for intervals; NaN where there was no value.
    """

    ahead: Floats
    alpha: float
    mae: float
    errors: Floats


def forecast_channel(
    y: Floats,
    fit: Embedded,
    valid: Embedded,
    last: Embedded,
    *,
    horizon: int,
    lags: int,
    alphas: Sequence[float],
) -> ChannelForecast:
    """Fit on some rows, choose the penalty on others, forecast from the last step of each series.

    Args:
        y: Scaled values of the channel ``(N, T)``, NaN where missing.
        fit: Rows to fit on; targets that are missing are interpolated.
        valid: Rows to choose on; targets that are missing do not count.
        last: The last step of each series.
        horizon: H, steps ahead.
        lags: Values behind a step that the ridge reads; they are carried forward over gaps.
        alphas: Penalties.
    """
    behind, targets = carry_forward(y), interpolate(y)
    width = fit.Z.shape[1] + lags

    def design(part: Embedded) -> Floats:
        return np.concatenate([part.Z, part.rows.behind(behind, lags)], axis=1)  # (R, M + lags)

    sums = RidgeSums(width, horizon)
    for part in fit.blocks(max(width, horizon)):
        sums.add(design(part), part.rows.ahead(targets, horizon))
    path = sums.decompose()
    errors = Errors(alphas, horizon)
    for part in valid.blocks(max(width, horizon)):
        errors.add(path, design(part), part.rows.ahead(y, horizon))
    alpha = errors.best()
    kept = valid.some(CALIBRATION_ROWS)
    missed = np.abs(kept.rows.ahead(y, horizon) - path.predict(design(kept), alpha))
    return ChannelForecast(
        path.predict(design(last), alpha),
        alpha,
        float(errors.means()[1][errors.alphas.index(alpha)]),
        missed.T.astype(np.float32),
    )


def conformal_widths(errors: Floats, coverage: float) -> Floats:
    """Half widths of intervals, ``(...)``, from absolute errors on held-out rows ``(..., rows)``.

    Of n errors, the one of rank ceil((n + 1) coverage): a new error of the same kind is at most
    that with probability ``coverage`` or more. NaN does not count.

    Example:
        >>> conformal_widths(np.arange(1.0, 20.0), 0.9)
        array(18.)
    """
    errors = np.sort(np.asarray(errors, np.float64), axis=-1)  # NaN last
    n = np.isfinite(errors).sum(axis=-1)
    ranks = np.ceil(np.round((n + 1) * coverage, 9)).astype(np.int64)
    if (ranks > n).any():
        fewest = int(n.min())
        raise ValueError(
            f"coverage is {coverage:g}, but there are only {fewest} held-out errors of some step; "
            f"give at most {math.floor(100 * fewest / (fewest + 1)) / 100:g}, or longer series"
        )
    return np.asarray(np.take_along_axis(errors, ranks[..., None] - 1, axis=-1)[..., 0])
