"""A process that runs the smallest function there is, pipelined.

`python -m bench.queue.processes.trivial REDIS_URL SECONDS`

`raw`: the same bytes again and again, replies are only counted, so the server is the limit. `redis_py`: pipelines of
the library, the most that a Python program reaches with it. Announces calls per second of each.
"""

import socket
import sys
import time
from urllib.parse import SplitResult, unquote, urlsplit

import hiredis
from redis import Redis

from cli.processes.supervisor import announce

_NAME = "trivial"
_LIBRARY = f"""#!lua name={_NAME}
redis.register_function('{_NAME}', function() return 1 end)
"""
_BATCH = 500
_REPLY = b":1\r\n"


def raw(url: str, seconds: float) -> float:
    """Keeps one batch on its way while the previous one is answered."""
    target = urlsplit(url)
    assert target.password
    batch = hiredis.pack_command(("FCALL", _NAME, "1", "{0}", "1")) * _BATCH  # type: ignore[arg-type]
    with _connect(target) as connection:
        connection.sendall(hiredis.pack_command(("AUTH", target.password)))  # type: ignore[arg-type]
        connection.recv(100)
        connection.sendall(batch)
        calls, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            connection.sendall(batch)
            _receive(connection, len(_REPLY) * _BATCH)
            calls += _BATCH
        return calls / (time.perf_counter() - began)


def _connect(target: SplitResult) -> socket.socket:
    if target.scheme != "unix":
        return socket.create_connection((target.hostname, target.port or 6379))
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(unquote(target.path))
    return connection


def _receive(connection: socket.socket, size: int) -> None:
    while size > 0:
        size -= len(connection.recv(min(size, 65536)))


def redis_py(redis: Redis, seconds: float) -> float:
    calls, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        with redis.pipeline(transaction=False) as pipe:
            for _ in range(_BATCH):
                pipe.fcall(_NAME, 1, "{0}", "1")
            pipe.execute()
        calls += _BATCH
    return calls / (time.perf_counter() - began)


def measure(url: str, seconds: float) -> None:
    with Redis.from_url(url, client_name="bench") as redis:
        redis.function_load(_LIBRARY, replace=True)
        announce(raw=raw(url, seconds), redis_py=redis_py(redis, seconds))


if __name__ == "__main__":
    measure(sys.argv[1], float(sys.argv[2]))
