"""A process that asks the server for nothing, again and again: `python -m bench.queue.pings REDIS_URL`.

Announces pairs (moment ms, ms until the answer) when it is asked to end.
"""

import signal
import sys
import time

from redis import Redis

from cli.processes.supervisor import announce

_PAUSE = 0.002


def ping(url: str) -> None:
    asked_to_end: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked_to_end.append(number))
    waits: list[tuple[float, float]] = []
    with Redis.from_url(url, client_name="bench") as redis:
        redis.ping()
        announce(ready=True)
        while not asked_to_end:
            moment, began = time.time() * 1000, time.perf_counter()
            redis.ping()
            waits.append((moment, (time.perf_counter() - began) * 1000))
            time.sleep(_PAUSE)
    announce(waits=waits)


if __name__ == "__main__":
    ping(sys.argv[1])
