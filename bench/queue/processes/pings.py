"""A process that sends PINGs: `python -m bench.queue.processes.pings REDIS_URL`.

Announces pairs (moment ms, ms until the answer) when it is asked to stop.
"""

import signal
import sys
import time

from redis import Redis

from cli.processes.supervisor import announce

_PAUSE = 0.002


def ping(url: str) -> None:
    stop_signals: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stop_signals.append(number))
    waits: list[tuple[float, float]] = []
    with Redis.from_url(url, client_name="bench") as redis:
        redis.ping()
        announce(ready=True)
        while not stop_signals:
            moment, began = time.time() * 1000, time.perf_counter()
            redis.ping()
            waits.append((moment, (time.perf_counter() - began) * 1000))
            time.sleep(_PAUSE)
    announce(waits=waits)


if __name__ == "__main__":
    ping(sys.argv[1])
