"""The servers of the tests: they can be killed, paused and started again."""

import subprocess
import sys
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import ConnectionError as Unreachable
from redis.exceptions import TimeoutError as Silent

from tests.support.servers import Server, on_both_servers
from tests.support.waiting import await_sync


def connect(server: Server) -> Redis:
    return Redis.from_url(server.url, decode_responses=True, socket_timeout=0.2, retry=None)


@on_both_servers
def test_a_server_starts_with_the_settings_that_couriers_need(server: Server) -> None:
    with connect(server) as client:
        assert client.config_get("appendonly") == {"appendonly": "yes"}
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert client.config_get("hash-max-listpack-value") == {"hash-max-listpack-value": "1024"}
        assert sorted(client.config_get("notify-keyspace-events")["notify-keyspace-events"]) == sorted("Kgx")


def test_a_killed_server_starts_again_at_the_same_address_with_its_data(own_server: Server) -> None:
    address = own_server.url
    with connect(own_server) as client:
        client.set("kept", "yes")
    own_server.kill()
    with pytest.raises(Unreachable):
        connect(own_server).get("kept")
    own_server.start()
    assert own_server.url == address
    assert connect(own_server).get("kept") == "yes"


def test_a_paused_server_does_not_reply_until_it_is_resumed(own_server: Server) -> None:
    own_server.pause()
    with pytest.raises((Silent, Unreachable)):
        connect(own_server).ping()
    own_server.resume()
    assert connect(own_server).ping()


def test_an_emptied_server_has_no_keys_and_its_first_settings(server: Server) -> None:
    with connect(server) as client:
        client.set("left", "behind")
        client.config_set("maxmemory", "100mb")
    server.kill()
    server.empty()
    assert server.all_keys() == []
    assert connect(server).config_get("maxmemory") == {"maxmemory": "0"}


def test_a_server_ends_when_the_process_that_started_it_is_killed(tmp_path: Path) -> None:
    script = f"""
import os, signal
from pathlib import Path
from tests.support.servers import Server
server = Server(Path({str(tmp_path)!r}))
server.start()
print(server.url, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    url = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True).stdout.strip()
    await_sync(lambda: is_down(url), what="the end of the server")


def is_down(url: str) -> bool:
    try:
        return not Redis.from_url(url, retry=None).ping()
    except Unreachable:
        return True
