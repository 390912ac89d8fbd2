"""Calendar features of real timestamps: what the forecasting protocol lets the encoder see."""

from typing import TYPE_CHECKING, Any

import numpy as np

from softclt.validation import Floats64

if TYPE_CHECKING:
    import pandas as pd

#: Names of the features, in their order.
CALENDAR = ("minute", "hour", "weekday", "day", "day of year", "month", "week of year")
_DAYS = (1 / 24, 1, 7, 31, 366, 366, 366)  # after which each begins again


def recurring(span: np.timedelta64) -> list[int]:
    """Numbers of the features that begin again at least twice in a time.

    Of the others, what comes after the end has not been seen: a month's number, read off half a
    year, is a clock that only ever went up.

    Example:
        >>> [CALENDAR[i] for i in recurring(np.timedelta64(30, "D"))]
        ['minute', 'hour', 'weekday']
    """
    days = span / np.timedelta64(1, "D")
    return [i for i, cycle in enumerate(_DAYS) if 2 * cycle <= days]


def calendar_features(times: Any) -> Floats64:
    """The seven features of TS2Vec's protocol, ``(..., 7, T)`` of times ``(..., T)``.

    Args:
        times: ``datetime64``, or what pandas reads as such; NaT gives NaN.

    Example:
        >>> calendar_features(np.array(["2024-12-30T06:15"], "datetime64[s]"))[:, 0].astype(int)
        array([ 15,   6,   0,  30, 365,  12,   1])
    """
    import pandas as pd

    array = np.asarray(times)
    index = pd.DatetimeIndex(array.reshape(-1))
    features = np.stack([_numbers(part) for part in _parts(index)])  # (7, n)
    by_time = features.reshape(len(CALENDAR), *array.shape)
    return np.ascontiguousarray(np.moveaxis(by_time, 0, -2))


def _parts(index: "pd.DatetimeIndex") -> list[Any]:
    parts = [index.minute, index.hour, index.weekday, index.day, index.dayofyear, index.month]
    return [*parts, index.isocalendar().week]


def _numbers(part: Any) -> Floats64:
    import pandas as pd

    return np.asarray(pd.Series(part).to_numpy(dtype=np.float64, na_value=np.nan))
