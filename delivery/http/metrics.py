"""Counts what this process answers, and tells it in the Prometheus text format (version 0.0.4).

Labels are routes, methods and statuses: never an id, so the number of series has a bound. The writer is ours because it
is smaller than a dependency: counters, gauges and one histogram.
"""

import resource
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator

from aiohttp import hdrs

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
METHODS = frozenset({hdrs.METH_GET, hdrs.METH_POST, hdrs.METH_PATCH, hdrs.METH_DELETE})
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The figures of one process."""

    def __init__(self) -> None:
        self.in_progress = 0
        self.streams = 0
        self.accepted = 0
        self._answers: defaultdict[tuple[str, str, int], int] = defaultdict(int)  # a Counter's += costs five times that
        self._buckets: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._started = time.time()

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self._answers[method if method in METHODS else "other", route, status] += 1
        self._buckets[route][bisect_left(BUCKETS, seconds)] += 1
        self._seconds[route] += seconds

    def tell(self) -> str:
        """Everything, in the text format."""
        return "\n".join([*self._told_answers(), *self._told_durations(), *self._told_gauges(), ""])

    def _told_answers(self) -> Iterator[str]:
        yield from _head("ada_http_requests_total", "counter", "Answers by method, route and status.")
        for (method, route, status), count in sorted(self._answers.items()):
            yield f'ada_http_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'

    def _told_durations(self) -> Iterator[str]:
        name = "ada_http_request_duration_seconds"
        yield from _head(name, "histogram", "From the request's head to the end of its answer.")
        for route, buckets in sorted(self._buckets.items()):
            total = 0
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), buckets, strict=True):
                total += count
                yield f'{name}_bucket{{route="{route}",le="{bound}"}} {total}'
            yield f'{name}_sum{{route="{route}"}} {self._seconds[route]:.6f}'
            yield f'{name}_count{{route="{route}"}} {total}'

    def _told_gauges(self) -> Iterator[str]:
        yield from _head("ada_http_requests_in_progress", "gauge", "Requests being answered.")
        yield f"ada_http_requests_in_progress {self.in_progress}"
        yield from _head("ada_http_streams", "gauge", "Event streams that are open.")
        yield f"ada_http_streams {self.streams}"
        yield from _head("ada_deliveries_accepted_total", "counter", "Deliveries taken, repeats included.")
        yield f"ada_deliveries_accepted_total {self.accepted}"
        yield from _head("process_start_time_seconds", "gauge", "When this process began, Unix time.")
        yield f"process_start_time_seconds {self._started:.3f}"
        yield from _head("process_cpu_seconds_total", "counter", "CPU time of this process.")
        yield f"process_cpu_seconds_total {_cpu_seconds():.3f}"


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
