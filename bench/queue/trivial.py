"""A process that runs the smallest script there is, pipelined: `python -m bench.queue.trivial REDIS_URL SECONDS`.

`raw`: the same bytes again and again and replies only counted, so the server is the limit; `redis_py`: pipelines of the
library, which is what a Python program can ask for at most without a pump. Announces calls per second of each, and the
server's share of the time.
"""

import socket
import sys
import time
from urllib.parse import SplitResult, unquote, urlsplit

import hiredis
from redis import Redis

from cli.processes.supervisor import announce

_SCRIPT = "return 1"
_AT_ONCE = 500
_REPLY = b":1\r\n"


def raw(url: str, sha: str, seconds: float) -> float:
    """One write of `_AT_ONCE` calls is always on its way while the one before is answered."""
    target = urlsplit(url)
    assert target.password
    batch = hiredis.pack_command(("EVALSHA", sha, "1", "{0}", "1")) * _AT_ONCE  # type: ignore[arg-type]
    with _connected(target) as line:
        line.sendall(hiredis.pack_command(("AUTH", target.password)))  # type: ignore[arg-type]
        line.recv(100)
        line.sendall(batch)
        calls, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            line.sendall(batch)
            _hear(line, len(_REPLY) * _AT_ONCE)
            calls += _AT_ONCE
        return calls / (time.perf_counter() - began)


def _connected(target: SplitResult) -> socket.socket:
    if target.scheme != "unix":
        return socket.create_connection((target.hostname, target.port or 6379))
    line = socket.socket(socket.AF_UNIX)
    line.connect(unquote(target.path))
    return line


def _hear(line: socket.socket, size: int) -> None:
    while size > 0:
        size -= len(line.recv(min(size, 65536)))


def redis_py(redis: Redis, sha: str, seconds: float) -> float:
    calls, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        with redis.pipeline(transaction=False) as pipe:
            for _ in range(_AT_ONCE):
                pipe.evalsha(sha, 1, "{0}", "1")
            pipe.execute()
        calls += _AT_ONCE
    return calls / (time.perf_counter() - began)


def measure(url: str, seconds: float) -> None:
    with Redis.from_url(url, client_name="bench") as redis:
        sha = str(redis.script_load(_SCRIPT))
        announce(raw=raw(url, sha, seconds), redis_py=redis_py(redis, sha, seconds))


if __name__ == "__main__":
    measure(sys.argv[1], float(sys.argv[2]))
