"""Fixtures of all tests: a real server per pytest worker, polling without fixed sleeps, a report on skips."""

import gc
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from redis.asyncio import Redis
from xdist.remote import Producer

from core.redis.keys import Lifetime, kind_of
from core.redis.store import Store
from tests.support import certificates_once, distribution, limits
from tests.support.audited import violations_in
from tests.support.browser import browser, chromium
from tests.support.replica_set import ReplicaSet
from tests.support.servers import Server, program_of
from tests.support.stack import Stack
from tests.support.waiting import until as until_true

__all__ = ["browser", "chromium"]

StartServer = Callable[[str], Server]


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartServer]:
    """The servers of this pytest worker by kind. Each is started when it is first used."""
    running: dict[str, Server] = {}

    def start(kind: str) -> Server:
        program = program_of(kind)
        if kind not in running:
            running[kind] = Server(tmp_path_factory.mktemp(kind), program)
        return running[kind]

    yield start
    for server in running.values():
        server.kill()


@pytest.fixture
def server(servers: StartServer, request: pytest.FixtureRequest) -> Server:
    """The Valkey of this pytest worker, empty; with `@on_both_servers` also Debian's Redis.

    A test that kills its server uses `own_server`.
    """
    chosen = servers(getattr(request, "param", "valkey"))
    chosen.empty()
    return chosen


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Server]:
    """A Valkey of this test alone."""
    own = Server(tmp_path / "valkey")
    own.start()
    yield own
    own.kill()


@pytest.fixture(scope="module")
def sentinels_and_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplicaSet]:
    """The replica set of a file. It ends with it: also idle it takes 6 % of a core."""
    opened = ReplicaSet(tmp_path_factory.mktemp("set"))
    opened.start()
    yield opened
    opened.close()


@pytest.fixture
def replica_set(sentinels_and_servers: ReplicaSet) -> ReplicaSet:
    """A primary with two replicas and three Sentinels, whole and empty; a test may break all of them."""
    sentinels_and_servers.empty()
    return sentinels_and_servers


@pytest.fixture
async def client(server: Server) -> AsyncIterator[Redis]:
    """A plain client of `server`; replies are text."""
    plain = Redis.from_url(server.url, decode_responses=True, driver_info=None, socket_timeout=limits.REPLY)
    async with plain as connected:
        yield connected


@pytest.fixture
async def clean_server(server: Server, client: Redis) -> AsyncIterator[Server]:
    """`server`. After the test every key must have a TTL or a declared lifetime (`core.redis.keys`)."""
    yield server
    async with client.pipeline(transaction=False) as pipeline:
        for key in (undeclared := [key for key in server.all_keys() if not is_declared(key)]):
            pipeline.pttl(key)
        leaked = [key for key, left in zip(undeclared, await pipeline.execute(), strict=True) if left == -1]
    assert not leaked, f"keys without a TTL: {leaked}"


def is_declared(key: str) -> bool:
    """Whether the key may stay. Keys of work may not: a test completes its work."""
    kind = kind_of(key)
    return kind is not None and kind.lifetime in (Lifetime.FOREVER, Lifetime.RETENTION)


@pytest.fixture
def shards() -> int:
    """The number of shards; a module that is also run with more parametrises it."""
    return 1


@pytest.fixture
async def stack(clean_server: Server, shards: int) -> AsyncIterator[Stack]:
    """Core on a real server. The audit runs after the test, and again after all remaining work was ended."""
    opened = await Stack.open(clean_server, shards)
    yield opened
    try:
        await opened.end_everything()
    finally:
        await opened.close()


@pytest.fixture
async def audited_store(clean_server: Server, shards: int) -> AsyncIterator[Store]:
    """An open store. The audit runs after the test."""
    opened = await Store.open(clean_server.url, shards)
    yield opened
    assert await violations_in(opened) == []
    await opened.close()


@pytest.fixture(scope="session")
def until() -> object:
    """`await until(lambda: …, within=2)`: how a test waits."""
    return until_true


@pytest.fixture(scope="session")
def long_form(pytestconfig: pytest.Config) -> bool:
    """Whether tests that prove by volume run their long form (`./ada prove`)."""
    return bool(pytestconfig.getoption("--long"))


EXAMPLES = "examples of each state machine, random requests of each operation (a few; --long: many)"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("ada")
    group.addoption("--examples", type=int, metavar="N", help=EXAMPLES)
    group.addoption("--long", action="store_true", help="the long form of the tests that prove by volume")
    group.addoption("--seed", type=int, default=0, metavar="N", help="what is added to the seeds of the storms (0)")
    group.addoption("--no-skips", action="store_true", help="a skipped test is a failure, as in CI")


def pytest_configure(config: pytest.Config) -> None:
    """A busy machine is given time. The short form tries 50 random examples, the long one 1,000."""
    gc.disable()  # until all tests are collected: nothing of them is garbage
    certificates_once.install()
    patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("short", patient, max_examples=settings().max_examples // 2)
    settings.register_profile("long", patient, max_examples=10 * settings().max_examples)
    settings.load_profile("long" if config.getoption("--long") else "short")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Limits every test. Those marked `long` run only in the long form."""
    distribution.longest_first(items)
    for item in items:
        limits.apply(item, is_long=config.getoption("--long"))
    if config.getoption("--long"):
        return
    deselected = [item for item in items if item.get_closest_marker("long")]
    items[:] = [item for item in items if item not in deselected]
    config.hook.pytest_deselected(items=deselected)


def pytest_collection_finish() -> None:
    """Leave the tests themselves, 700,000 objects, out of every collection of garbage, and begin with these."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """With `-n auto`, which `./ada test` gives."""
    return distribution.number_of_workers(config.args)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> distribution.ByFile | None:
    """With `--dist loadfile`, which `./ada test` gives: whole folders and single tests too."""
    return distribution.ByFile(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """With `--no-skips` a skip is a failure."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.getoption("--no-skips") and terminal is not None and skips(terminal):
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def skips(terminal: pytest.TerminalReporter) -> Counter[str]:
    """Reason → number of tests skipped for it."""
    return Counter(reason_of(report) for report in terminal.stats.get("skipped", []))


def reason_of(report: pytest.TestReport) -> str:
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return reason.removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints the reasons of skips; a reason may name the system package to install."""
    found = skips(terminalreporter)
    for reason, count in sorted(found.items()):
        terminalreporter.write_line(f"skipped {count}: {reason}")
    if found and config.getoption("--no-skips"):
        terminalreporter.write_line("FAILED: no test may be skipped here", red=True)
