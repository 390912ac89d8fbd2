"""Times of steps: checked, counted in usual gaps, and continued into the future."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

Times = NDArray[Any]  # datetime64[ns] or float64

RANGE = "from 1677-09-22 to 2262-04-10"  # what nanoseconds in 64 bits can hold, in whole days
_FIRST, _END = np.datetime64("1677-09-22"), np.datetime64("2262-04-11")


class FarDateError(ValueError):
    """A date that does not fit into nanoseconds.

    Attributes:
        at: Its position in the array, counted through.
    """

    def __init__(self, date: Any, at: int) -> None:
        self.at = at
        super().__init__(
            f"the date {str(date)[:19]} is too far away; expected dates {RANGE}: correct it, or "
            "give the times as numbers, e.g. years"
        )


def in_nanoseconds(dates: NDArray[Any]) -> NDArray[np.datetime64]:
    """Dates of any unit as ``datetime64[ns]``; those that would wrap around are refused."""
    far = (dates < _FIRST) | (dates >= _END)  # NaT is neither
    if far.any():
        at = int(far.argmax())
        raise FarDateError(dates.flat[at], at)
    return dates.astype("datetime64[ns]")


def check_times(times: Any, lengths: NDArray[np.int64], n_steps: int) -> Times:
    """Times ``(N, T)`` of series, each later than the one before it.

    Args:
        times: ``(N, T)``, or ``(T,)`` for all; numbers, ``datetime64`` or what pandas reads so.
        lengths: Steps of each series; what is behind them does not matter.
        n_steps: T.
    """
    array = _as_times(times)
    n = len(lengths)
    if array.shape not in ((n_steps,), (n, n_steps)):
        raise ValueError(
            f"times has shape {array.shape}; expected ({n_steps},) or ({n}, {n_steps}), "
            "a time for each step"
        )
    array = np.broadcast_to(array, (n, n_steps))
    for i, length in enumerate(lengths):
        own = array[i, :length]
        missing = np.isnat(own) if own.dtype.kind == "M" else ~np.isfinite(own)
        if missing.any():
            raise ValueError(f"times: step {int(missing.argmax())} of series {i} has no time")
        wrong = own[1:] <= own[:-1]
        if wrong.any():
            step = int(wrong.argmax()) + 1
            same = own[step] == own[step - 1]
            came = "has the time of" if same else "is earlier than"
            remedy = "drop one of them" if same else "sort the steps by time"
            raise ValueError(
                f"times: step {step} of series {i} ({own[step]}) {came} the step before "
                f"({own[step - 1]}); {remedy}, and keep different series apart"
            )
    return array


def future_times(times: Times, horizon: int) -> Times:
    """The next ``horizon`` times of one series ``(T,)``.

    Dates go on as pandas understands them, e.g. from month to month; else by the median gap.

    Example:
        >>> future_times(np.array(["2024-01-01", "2024-02-01", "2024-03-01"], "datetime64[ns]"), 1)
        array(['2024-04-01T00:00:00.000000000'], dtype='datetime64[ns]')
    """
    import pandas as pd

    if times.dtype.kind == "M" and len(times) > 2:
        frequency = pd.infer_freq(pd.DatetimeIndex(times))
        if frequency is not None:
            index = pd.date_range(times[-1], periods=horizon + 1, freq=frequency)
            return index[1:].to_numpy("datetime64[ns]")
    gap = median_gap(times)
    ahead = np.arange(1, horizon + 1) * gap
    if times.dtype.kind == "M":
        return np.asarray(times[-1] + ahead.astype("timedelta64[ns]"))
    return np.asarray(times[-1] + ahead)


def median_gap(times: Times) -> float:
    """The usual distance of two steps, in nanoseconds for dates; 1 for a single step."""
    if len(times) < 2:
        return 1.0
    return float(np.median(np.diff(since_first(times))))


def in_gaps(times: Times, lengths: NDArray[np.int64]) -> NDArray[np.float64]:
    """Times ``(N, T)`` since the first of each series, in units of the median gap of all series."""
    since = np.stack([since_first(own) for own in times])
    gaps = [np.diff(own[:length]) for own, length in zip(since, lengths, strict=True)]
    every = np.concatenate(gaps)
    return since / (float(np.median(every)) if every.size else 1.0)


def since_first(times: Times) -> NDArray[np.float64]:
    """Numbers since the first time, so that no digit is lost; nanoseconds for dates."""
    since: Any = times - times[0]
    return np.asarray(since, dtype="timedelta64[ns]" if times.dtype.kind == "M" else None).astype(
        np.float64
    )


def _as_times(times: Any) -> Times:
    import pandas as pd

    array = np.asarray(times)
    if array.dtype.kind == "M":
        return _checked(array)
    if array.dtype.kind in "iuf":
        return array.astype(np.float64)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about dates of no known form
            dates = pd.to_datetime(pd.Series(array.reshape(-1)))
    except (TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:80]
        raise ValueError(
            f"times are {array.dtype} and no dates ({reason}); expected numbers or dates"
        ) from None
    if dates.dt.tz is not None:
        dates = dates.dt.tz_convert("UTC").dt.tz_localize(None)
    return _checked(dates.to_numpy()).reshape(array.shape)


def _checked(dates: NDArray[Any]) -> Times:
    try:
        return in_nanoseconds(dates)
    except FarDateError as error:
        raise ValueError(f"times: {error}") from None


def uneven_times(
    times: Any, lengths: NDArray[np.int64], n_steps: int
) -> NDArray[np.float32] | None:
    """Times ``(N, T)`` in usual gaps since the start of each series; None if all gaps are equal.

    Args:
        times: See `check_times`.
        lengths: Steps of each series; behind them the times are 0.
        n_steps: T.
    """
    since = in_gaps(check_times(times, lengths, n_steps), lengths)
    inside = np.arange(n_steps) < lengths[:, None]
    even = np.broadcast_to(np.arange(n_steps), since.shape)
    if np.allclose(since[inside], even[inside], rtol=1e-6, atol=1e-3):
        return None
    return np.where(inside, since, 0.0).astype(np.float32)
