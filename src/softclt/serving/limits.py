"""How much one request may ask for, and how a request is refused."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from softclt.validation import check_known, check_range


class Refusal(Exception):
    """A request that gets no answer: a status of HTTP and the reason in words."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


@dataclass(frozen=True)
class Limits:
    """What a server takes on.

    Attributes:
        body: Bytes of a request.
        series: Series of a request.
        channels: Channels of a series.
        steps: Steps of a series.
        values: Numbers of a request, once its short series are padded to the length of the longest.
        seconds: From the first byte of a request to its answer.
        requests: Under way at the same time; more are sent away.
        hits: Nearest series that may be asked for.
        streams: Series that are followed step by step at the same time.
        stream_steps: Steps of a stream in one request.
        idle: Seconds after which a stream that nobody pushes to makes room for a new one.
    """

    body: int = 16 * 2**20
    series: int = 10_000
    channels: int = 256
    steps: int = 100_000
    values: int = 5_000_000
    seconds: float = 30.0
    requests: int = 64
    hits: int = 1000
    streams: int = 1000
    stream_steps: int = 1000
    idle: float = 3600.0

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Limits":
        """The defaults but for those that are given by name."""
        kinds = {field.name: field.type for field in fields(cls)}
        check_known(given, kinds, "a server", "limit")
        for name, value in given.items():
            check_range(value, f"the limit {name}", 0, open_low=True)
            if kinds[name] is int and not isinstance(value, int):
                raise ValueError(f"the limit {name} is {value!r}; expected a whole number")
        return cls(**given)

    def check_body(self, n_bytes: int) -> None:
        """Refuse a body that is too large."""
        if n_bytes > self.body:
            raise Refusal(
                413,
                f"the body has more than {self.body:,} bytes; send fewer series at a time",
                {"connection": "close"},
            )

    def check_size(self, n: int, d: int, t: int) -> None:
        """Refuse series ``(N, D, T)`` that are too many, too long, or too large when padded."""
        for count, name, words in (
            (n, "series", "series; send fewer at a time"),
            (d, "channels", "channels; send fewer"),
            (t, "steps", "steps; cut longer series into parts"),
            (n * d * t, "values", "values, padded to the longest series; send fewer at a time"),
        ):
            most = getattr(self, name)
            if count > most:
                raise Refusal(
                    413, f"the body has {count:,} {name}; expected at most {most:,} {words}"
                )
