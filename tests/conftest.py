"""The stack of all tests: a real server per worker, waiting without sleeping, the report on rows and skips."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from core.redis.keys import Lifetime, kind_of
from tests.support import rows
from tests.support.servers import Server, program_of
from tests.support.stack import Stack
from tests.support.waiting import until as until_true

Started = Callable[[str], Server]


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """The worker's servers by kind, each started when first asked for."""
    running: dict[str, Server] = {}

    def started(kind: str) -> Server:
        program = program_of(kind)
        if kind not in running:
            running[kind] = Server(tmp_path_factory.mktemp(kind), program)
        return running[kind]

    yield started
    for server in running.values():
        server.kill()


@pytest.fixture
def server(servers: Started, request: pytest.FixtureRequest) -> Server:
    """The worker's Valkey, empty; with `@on_both_servers` also Debian's Redis. Who kills it takes `own_server`."""
    chosen = servers(getattr(request, "param", "valkey"))
    chosen.empty()
    return chosen


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A Valkey for this test alone."""
    own = Server(tmp_path / "valkey")
    own.start()
    yield own
    own.kill()


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Redis]:
    """A plain client of `server`, answers as text."""
    async with Redis.from_url(server.url, decode_responses=True) as connected:
        yield connected


@pytest.fixture
async def clean_server(server: Server, client: Redis) -> AsyncIterator[Server]:
    """`server`. Afterwards every key must have a TTL or a declared lifetime (`core.redis.keys`)."""
    yield server
    leaked = [key for key in server.all_keys() if await client.pttl(key) == -1 and not is_declared(key)]
    assert not leaked, f"keys without an end: {leaked}"


def is_declared(key: str) -> bool:
    """Work must be done by the end of the test: its keys are no exception. What retention ends has its own tests."""
    kind = kind_of(key)
    return kind is not None and kind.lifetime in (Lifetime.FOREVER, Lifetime.RETENTION)


@pytest.fixture
async def stack(clean_server: Server) -> AsyncIterator[Stack]:
    """Core on a real server. It is audited when the test is over, and again after everything left undone was ended."""
    opened = await Stack.open(clean_server)
    yield opened
    try:
        await opened.end_everything()
    finally:
        await opened.close()


@pytest.fixture(scope="session")
def until() -> object:
    """`await until(lambda: …, within=2)`: the only way a test waits."""
    return until_true


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ada")
    group.addoption("--rows", choices=["text", "json"], help="print the rows of the specification and their tests")
    group.addoption("--examples", type=int, metavar="N", help="examples of each state machine of the queue (a few)")
    group.addoption("--no-skips", action="store_true", help="a skipped test is a failure, as in CI")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Rows are checked at every collection, printed when asked for."""
    shown = rows.shown_by(session.items)
    form = session.config.getoption("--rows")
    if form:
        print(rows.as_json(shown) if form == "json" else rows.as_text(shown))  # noqa: T201 - this is what was asked for
        session.items.clear()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Listing the rows runs no test, which is no failure; with `--no-skips` a skip is one."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("--rows"):
        session.exitstatus = pytest.ExitCode.OK
    elif session.config.getoption("--no-skips") and terminal is not None and skips(terminal):
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def skips(terminal: pytest.TerminalReporter) -> Counter[str]:
    """Reason → how many tests were skipped for it."""
    return Counter(reason_of(report) for report in terminal.stats.get("skipped", []))


def reason_of(report: pytest.TestReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """What was skipped and why; a reason that names a system package tells what to install."""
    found = skips(terminalreporter)
    for reason, count in sorted(found.items()):
        terminalreporter.write_line(f"skipped {count}: {reason}")
    if found and config.getoption("--no-skips"):
        terminalreporter.write_line("FAILED: nothing may be skipped here", red=True)
