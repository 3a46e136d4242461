"""Metrics of the API in the Prometheus text format (version 0.0.4).

Labels are methods, routes and statuses, never ids, so the number of series is bounded. Units are base units.

One process: its own figures, with the usual process_* ones. With `serve --processes N` every process answers with the
sums of all: prometheus_client then keeps the values in files of PROMETHEUS_MULTIPROC_DIR, and process_* are missing.
"""

import os
from pathlib import Path

from aiohttp import hdrs
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, disable_created_metrics
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
METHODS = frozenset({hdrs.METH_GET, hdrs.METH_POST, hdrs.METH_PATCH, hdrs.METH_DELETE})
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

# Without it each counter has a second series, its time of creation.
disable_created_metrics()  # type: ignore[no-untyped-call]  # the library's own


class Metrics:
    """The metrics of one application, in a registry of its own."""

    def __init__(self) -> None:
        self._directory = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
        own = self._registry = CollectorRegistry()
        self._requests = Counter(
            "ada_http_requests", "Responses by method, route and status.", ["method", "route", "status"], registry=own
        )
        self._duration = Histogram(
            "ada_http_request_duration_seconds",
            "From the head of the request to the end of its handler.",
            ["route"],
            buckets=BUCKETS,
            registry=own,
        )
        self.in_progress = Gauge(
            "ada_http_requests_in_progress", "Requests in progress.", registry=own, multiprocess_mode="livesum"
        )
        self.streams = Gauge("ada_http_streams", "Open event streams.", registry=own, multiprocess_mode="livesum")
        self.accepted = Counter("ada_deliveries_accepted", "Accepted deliveries, repeats included.", registry=own)
        self.mails = Counter("ada_inbound_mails", "Mails that came as replies, by result.", ["result"], registry=own)
        self._known: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}
        ProcessCollector(registry=own)

    def count_mail(self, result: str) -> None:
        self.mails.labels(str(result)).inc()

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        requests, duration = self._series(method if method in METHODS else "other", route, status)
        requests.inc()
        duration.observe(seconds)

    def _series(self, method: str, route: str, status: int) -> tuple[Counter, Histogram]:
        """Return the counter and the histogram of these labels. They are kept, because `labels` checks them at each
        call."""
        labels = method, route, status
        if labels not in self._known:
            self._known[labels] = self._requests.labels(*labels), self._duration.labels(route)
        return self._known[labels]

    def render(self) -> bytes:
        if self._directory is None:
            return generate_latest(self._registry)
        _remove_gauges_of_dead_processes(self._directory)
        every_process = CollectorRegistry()
        MultiProcessCollector(every_process, self._directory)  # type: ignore[no-untyped-call]  # the library's own
        return generate_latest(every_process)


def _remove_gauges_of_dead_processes(directory: str) -> None:
    """Remove the gauges of killed processes; their counters stay, since totals must not go down."""
    for file in Path(directory).glob("gauge_live*_*.db"):
        pid = file.stem.rpartition("_")[2]
        if not Path("/proc", pid).exists():
            mark_process_dead(int(pid), directory)  # type: ignore[no-untyped-call]  # the library's own
