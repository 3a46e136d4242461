"""The embedded server: one server per directory, the same address on every run, secrets readable by the owner only."""

import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest
from redis import Redis

from cli.processes.embedded_valkey import DirectoryInUse, free_port, locked, prepare, reserve, running_url
from tests.support.paths import ROOT
from tests.support.servers import Server, needs_package


def test_port_and_password_are_the_same_on_every_run(tmp_path: Path) -> None:
    assert prepare(tmp_path) == prepare(tmp_path)


def test_a_port_that_is_in_use_is_replaced_and_the_password_is_kept(tmp_path: Path) -> None:
    first = prepare(tmp_path)
    with socket.socket() as other:
        other.bind(("127.0.0.1", first.port))
        other.listen()
        second = prepare(tmp_path)
    assert second.port != first.port
    assert second.password == first.password


def test_no_process_gets_a_port_that_another_one_has_chosen(tmp_path: Path) -> None:
    """Also if nothing listens on it yet, or the server is down; after the end of the other one it is free."""
    program = (
        "from cli.processes.embedded_valkey import *; print(free_port(), flush=True); print(reserve(int(input())))"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=PIPE, stdout=PIPE, text=True, cwd=ROOT) as other:
        assert other.stdin
        assert other.stdout
        chosen = int(other.stdout.readline())
        assert not reserve(chosen)
        assert other.communicate(f"{free_port()}\n")[0] == "False\n"
    assert reserve(chosen)


def test_only_the_owner_can_read_the_password(tmp_path: Path) -> None:
    assert stat.S_IMODE(prepare(tmp_path).config.stat().st_mode) == 0o600


def test_a_second_ada_on_the_same_data_is_refused_with_the_process_id_of_the_first(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "valkey"),
        pytest.raises(DirectoryInUse, match=r"another ada \(process \d+\) uses"),
    ):
        with locked(tmp_path / "valkey"):
            pass
    with locked(tmp_path / "valkey"):
        pass


def test_the_directory_stays_locked_until_the_server_has_ended(tmp_path: Path) -> None:
    with locked(tmp_path) as lock:
        server = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=[lock])
    with pytest.raises(DirectoryInUse):
        with locked(tmp_path):
            pass
    server.communicate(b"\n")
    with locked(tmp_path):
        pass


def test_a_running_server_is_found_by_its_directory(own_server: Server) -> None:
    url = running_url(own_server.place.directory)
    assert url is not None
    with Redis.from_url(url) as client:
        assert client.ping()
    own_server.kill()
    assert running_url(own_server.place.directory) is None


def test_no_server_is_found_in_a_directory_that_never_had_one(tmp_path: Path) -> None:
    assert running_url(tmp_path / "nothing") is None


def test_the_directory_name_may_contain_spaces_and_quotes(tmp_path: Path) -> None:
    server = Server(tmp_path / "мои данные'")
    server.start()
    server.kill()


def test_adas_processes_use_the_socket_and_tools_use_the_port(own_server: Server) -> None:
    place = own_server.place
    assert place.socket
    assert stat.S_IMODE(place.socket.stat().st_mode) == 0o600
    for url, family in ((place.url, "unix://"), (place.tcp_url, "redis://")):
        assert url.startswith(family)
        with Redis.from_url(url) as client:
            assert client.ping()


@needs_package("redis-tools", "redis-cli")
def test_redis_cli_accepts_the_address_for_tools(own_server: Server) -> None:
    done = subprocess.run(["redis-cli", "-u", own_server.place.tcp_url, "PING"], capture_output=True, text=True)
    assert done.stdout == "PONG\n"


def test_a_directory_with_a_long_path_has_only_the_port(tmp_path: Path) -> None:
    server = Server(tmp_path / ("long" * 25))
    server.start()
    assert server.url == server.place.tcp_url
    server.kill()


def test_a_copy_of_the_directory_is_a_backup(tmp_path: Path) -> None:
    """The procedure of docs/deployment.md: stop, copy ADA_DATA, start on the copy."""
    first = Server(tmp_path / "data")
    first.start()
    with Redis.from_url(first.url) as client:
        client.set("kept", "here")
    first.stop()
    shutil.copytree(tmp_path / "data", tmp_path / "copy")
    second = Server(tmp_path / "copy")
    try:
        second.start()
        with Redis.from_url(second.url, decode_responses=True) as client:
            assert client.get("kept") == "here"
    finally:
        second.kill()
