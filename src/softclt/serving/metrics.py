"""What Prometheus is told of a server."""

from collections.abc import Callable

from softclt.optional import needed

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SERIES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 1024)


class Metrics:
    """Counts of one server, in a registry of its own.

    Args:
        streams: Gives the number of streams that are followed.
    """

    def __init__(self, streams: Callable[[], int]) -> None:
        with needed("a server needs prometheus-client: pip install 'softclt[serve]'"):
            from prometheus_client import (
                CollectorRegistry,
                Counter,
                Gauge,
                Histogram,
                ProcessCollector,
            )
        own = self._registry = CollectorRegistry()
        ProcessCollector(registry=own)  # memory, processor time and files
        self._requests = Counter(
            "softclt_requests", "Requests answered.", ["path", "status"], registry=own
        )
        self._seconds = Histogram(
            "softclt_request_seconds",
            "From the first byte of a request to the last of its answer.",
            ["path"],
            buckets=_SECONDS,
            registry=own,
        )
        self._series = Histogram(
            "softclt_batch_series", "Series in a batch.", buckets=_SERIES, registry=own
        )
        self.running = Gauge("softclt_requests_running", "Requests under way.", registry=own)
        Gauge("softclt_streams", "Streams that are followed.", registry=own).set_function(streams)

    def answered(self, path: str, status: int, seconds: float) -> None:
        """One more request has had its answer."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def batch(self, n_series: int) -> None:
        """One more batch is computed."""
        self._series.observe(n_series)

    def text(self) -> bytes:
        """All of it as Prometheus reads it."""
        from prometheus_client import generate_latest

        return generate_latest(self._registry)
