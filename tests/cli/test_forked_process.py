"""Children of the supervisor that are forks, with a real fork server."""

import os
import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec

import pytest

from cli.commands.start.installation import libraries
from cli.processes.forked_process import title_of
from cli.settings.settings import load
from tests.support.paths import ROOT
from tests.support.waiting import until


@dataclass
class Output:
    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip())

    def last(self, word: str) -> list[str]:
        """Return the rest of the child's last line that begins with the word."""
        found = [line.split()[2:] for line in self.lines if line.startswith(f"child {word}")]
        return found[-1] if found else []

    def count(self, line: str) -> int:
        return self.lines.count(line)


@pytest.fixture
def output() -> Iterator[Output]:
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "tests.cli.forked_children"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "ADA_SECRET_KEY": "secret"},
        stdout=subprocess.PIPE,
        text=True,
    )
    output = Output(process)
    reading = threading.Thread(target=output.read, daemon=True)
    reading.start()
    yield output
    process.kill()
    process.wait()
    reading.join()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_fork_is_restarted_with_its_own_settings_until_the_supervisor_stops(output: Output) -> None:
    await until(lambda: output.count("child to stderr") == 1)
    assert output.last("settings") == ["ADA_OWN"]
    assert output.count("child a child of its own") == 1, "jobs and plugins may start processes"
    assert output.last("known") == ["False"]
    os.kill(int(output.last("pids")[0]), signal.SIGKILL)
    await until(lambda: output.count("child to stderr") == 2)
    assert output.count("child ended (signal SIGKILL), restarts in 0.5 s") == 1
    output.process.terminate()
    await until(lambda: output.lines[-1] == "stopped")
    assert not is_alive(int(output.last("pids")[0]))


async def test_a_fork_whose_server_was_killed_is_replaced(output: Output) -> None:
    await until(lambda: output.count("child ready") == 1)
    child, server = map(int, output.last("pids"))
    os.kill(server, signal.SIGKILL)
    await until(lambda: output.count("child ready") == 2)
    await until(lambda: not is_alive(child))
    assert output.last("known") == ["False"]
    assert output.count("child ended (killed, because the process that forks it has ended), restarts in 0.5 s") == 1


async def test_a_fork_ends_when_the_supervisor_is_killed(output: Output) -> None:
    await until(lambda: output.count("child ready") == 1)
    output.process.kill()
    await until(lambda: not is_alive(int(output.last("pids")[0])))


def test_every_module_that_the_fork_server_imports_exists() -> None:
    """Python's fork server passes over a module that it cannot import, so each fork would import its own copy."""
    assert [module for module in libraries(load()) if find_spec(module) is None] == []


def test_up_itself_imports_no_client_of_redis_and_no_web_server() -> None:
    """It only starts processes; each library would need its memory once more."""
    program = "import sys, cli.main, cli.commands.start.up; print(*{'redis', 'aiohttp', 'telethon'} & {*sys.modules})"
    words = [sys.executable, "-P", "-c", program]
    assert (
        subprocess.run(words, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True).stdout
        == b"\n"
    )


def test_nothing_that_up_imports_is_a_library_of_an_extra() -> None:
    """They are imported by the settings that need them alone, or need not be installed at all."""
    extras = {"apprise", "ldap3", "joserfc", "scim2_models", "pywebpush", "py_vapid"}
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert known.keys() == {"apprise", "ldap", "oidc", "scim", "web-push"}, "name the modules of a new one here"
    modules = [*libraries(load()), "cli.commands.start.up", "cli.commands.directory.sync", "couriers.apprise.courier"]
    imports = f"[importlib.import_module(one) for one in {modules!r}]"
    program = f"import importlib, sys; {imports}; print(*{extras!r} & {{*sys.modules}})"
    words, environment = [sys.executable, "-P", "-c", program], {**os.environ, "PYTHONPATH": str(ROOT)}
    assert subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, check=True).stdout == b"\n"


def test_the_title_of_a_fork_has_no_secret_of_a_url() -> None:
    for word, shown in {
        "https://1c.example.org/s/s3cr3t/people.csv?token=s3cr3t": "https://1c.example.org/…",
        "https://1c.example.org:8443?s3cr3t": "https://1c.example.org:8443/…",
        "https://ada:s3cr3t/x@1c.example.org/x": "https:///…",
        "ldaps://dc.example.org": "ldaps://dc.example.org",
        "http://127.0.0.1:8080": "http://127.0.0.1:8080",
        "/srv/exports": "/srv/exports",
    }.items():
        assert title_of(["cli", "sync", "1c", word]) == f"{sys.executable} -m cli sync 1c {shown}"
