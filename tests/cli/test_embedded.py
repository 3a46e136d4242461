"""The embedded server's directory: one server at a time, one address from run to run, secrets for the owner alone."""

import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from redis import Redis

from cli.processes.embedded_valkey import Busy, claimed, find, prepare
from tests.support.servers import Server, needs_package


def test_port_and_password_stay_from_run_to_run(tmp_path: Path) -> None:
    assert prepare(tmp_path) == prepare(tmp_path)


def test_a_port_that_somebody_else_took_is_replaced_and_the_password_stays(tmp_path: Path) -> None:
    first = prepare(tmp_path)
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", first.port))
        stranger.listen()
        second = prepare(tmp_path)
    assert second.port != first.port
    assert second.password == first.password


def test_only_the_owner_can_read_the_password(tmp_path: Path) -> None:
    assert stat.S_IMODE(prepare(tmp_path).config.stat().st_mode) == 0o600


def test_a_second_ada_on_the_same_data_is_told_who_works_there(tmp_path: Path) -> None:
    with claimed(tmp_path / "valkey"), pytest.raises(Busy, match=r"another ada \(process \d+\) works in"):
        with claimed(tmp_path / "valkey"):
            pass
    with claimed(tmp_path / "valkey"):
        pass


def test_the_directory_stays_claimed_until_the_server_itself_has_ended(tmp_path: Path) -> None:
    with claimed(tmp_path) as lock:
        heir = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock])
    with pytest.raises(Busy):
        with claimed(tmp_path):
            pass
    heir.communicate(b"\n")
    with claimed(tmp_path):
        pass


def test_a_running_server_is_found_by_its_directory(own_server: Server) -> None:
    address = find(own_server.place.directory)
    assert address is not None
    with Redis.from_url(address) as client:
        assert client.ping()
    own_server.kill()
    assert find(own_server.place.directory) is None


def test_no_server_is_found_where_none_ever_was(tmp_path: Path) -> None:
    assert find(tmp_path / "nothing") is None


def test_a_directory_with_spaces_and_quotes_in_its_name_serves(tmp_path: Path) -> None:
    server = Server(tmp_path / "мои данные'")
    server.start()
    server.kill()


def test_our_processes_reach_it_by_its_socket_and_tools_by_its_port(own_server: Server) -> None:
    place = own_server.place
    assert place.socket
    assert stat.S_IMODE(place.socket.stat().st_mode) == 0o600
    for url, family in ((place.url, "unix://"), (place.tcp_url, "redis://")):
        assert url.startswith(family)
        with Redis.from_url(url) as client:
            assert client.ping()


@needs_package("redis-tools", "redis-cli")
def test_the_address_for_tools_is_one_for_redis_cli(own_server: Server) -> None:
    done = subprocess.run(["redis-cli", "-u", own_server.place.tcp_url, "PING"], capture_output=True, text=True)
    assert done.stdout == "PONG\n"


def test_in_a_directory_with_a_long_name_there_is_only_the_port(tmp_path: Path) -> None:
    server = Server(tmp_path / ("long" * 25))
    server.start()
    assert server.url == server.place.tcp_url
    server.kill()
