"""Every command of every guide is run as it stands there, in the order of the guide, against a real `./ada up`."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

import pytest

from cli.processes.embedded_valkey import free_port
from tests.cli.installation import have_ended
from tests.support.paths import ROOT
from tests.support.waiting import await_sync
from tests.system.crash.process import AdaProcess
from tests.system.guides.blocks import Unmarked, blocks_of
from tests.system.guides.person import PAGE
from tests.system.guides.reader import Reader, WrongGuide


@dataclass(frozen=True)
class Guide:
    """`words` and `found`: see `Reader`. `settings`: those of the sandbox that the reader has, too."""

    page: str
    words: Mapping[str, str] = field(default_factory=dict)
    found: Mapping[str, str] = field(default_factory=dict)
    settings: tuple[str, ...] = ()

    def follow(self, reader: Reader) -> list[str]:
        """Returns the first fault, if there is one: what comes behind it may rest on what failed."""
        reader.words |= self.words
        reader.found |= {word: re.compile(pattern) for word, pattern in self.found.items()}
        try:
            for block in blocks_of(ROOT / self.page):
                try:
                    reader.follow(block)
                except WrongGuide as wrong:
                    return [f"{self.page}:{block.line}: {wrong}"]
        except Unmarked as unmarked:
            return [str(unmarked)]
        finally:
            reader.close()
        return []


DELIVERY = {"ID": r"\b0\.\w+\.\d{16,}"}
IN_ONE_INSTALLATION = (
    Guide("README.md"),
    Guide("docs/first-hour.md"),
    Guide("docs/directory.md", found=DELIVERY),
    Guide("docs/import.md"),
    Guide("docs/backup.md"),
    Guide("docs/runbook.md"),
    Guide("docs/sending.md"),
    Guide("docs/questions.md", found=DELIVERY),
    Guide("docs/replies.md"),
    Guide("docs/scim.md"),
    Guide("docs/keys-and-scopes.md", found={"ada_…": r"\bada_[\w-]{20,}", "ID": r"\b[0-9a-f]{12}\b(?=.*school)"}),
    Guide("docs/integrate.md", found={"ada_…": r"\bada_[\w-]{20,}", "adap_…": r"\badap_\d+\.[\w-]{20,}"}),
    Guide("docs/webhooks.md", found={"ID": r"\bwh_[0-9a-f]+"}),
    Guide("docs/queue.md", found={"ID": r"(?<=put )\S+"}),
    Guide("docs/add-a-courier.md"),
    Guide("docs/other-languages.md"),
    Guide("docs/sandbox.md", found={"localhost:8090": r"127\.0\.0\.1:\d+(?=/\.)"}),
    Guide("docs/plugins.md"),
    Guide("docs/scenarios-flow.md"),
    Guide("docs/scenarios-messages.md"),
    Guide("docs/scenarios-running.md"),
    Guide("docs/scenarios-check.md"),
    Guide("docs/scenarios-coreness.md"),
    Guide("docs/connect-apprise.md"),
    Guide("docs/connect-web-push.md"),
    Guide("docs/bots.md", settings=("ADA_BOT_TOKEN", "ADA_BOT_API_URL", "ADA_SMTP_URL")),
)
"""What their commands add can be there side by side, in any order."""

WITH_AN_ACCOUNT = (
    Guide(
        "docs/connect-telegram.md",
        {"123456:ABC…": "ADA_TELEGRAM_BOT_TOKEN", "YOUR_ID": "100001"},
        settings=("ADA_TELEGRAM_SERVER", "ADA_TELEGRAM_SERVER_KEY"),
    ),
    Guide(
        "docs/connect-telegram-bot.md",
        {"123456:ABC…": "ADA_BOT_TOKEN", "YOUR_ID": "100001"},
        settings=("ADA_BOT_API_URL",),
    ),
    Guide("docs/connect-vk.md", {"vk1.a.…": "ADA_VK_TOKEN", "YOUR_ID": "200001"}, settings=("ADA_VK_API_URL",)),
    Guide("docs/connect-max.md", {"f9LHo…": "ADA_MAX_TOKEN", "YOUR_ID": "300001"}, settings=("ADA_MAX_API_URL",)),
    Guide(
        "docs/connect-email.md",
        {"smtp://user:password@mail.example.org:587?from=University <noreply@example.org>": "ADA_SMTP_URL"},
    ),
)
"""The account is one of a sandbox; a word whose own word is a setting of the sandbox is replaced by its value."""

KANNEL = ("/usr/sbin/bearerbox", "/usr/sbin/smsbox", "/usr/lib/kannel/test/fakesmsc")
ALONE = (
    Guide("docs/connect-sms.md", {program: f"background {program}" for program in KANNEL}, DELIVERY),
    Guide("docs/own-redis.md", settings=("ADA_VK_API_URL", "ADA_VK_TOKEN")),
    Guide("docs/deployment.md"),
    Guide("docs/kubernetes.md"),
    Guide("docs/managed-services.md", {"rediss": "redis", "store.example.org": "127.0.0.1"}),
    Guide("docs/jobs.md"),
    Guide("docs/scenarios.md", found={"RUN": r'"id":\s*"(\d+\.[^"]+)"'}),
    Guide("docs/speech-and-models.md"),
    Guide("docs/performance.md"),
    Guide("docs/proof.md"),
    Guide("docs/soak.md"),
)
"""Where the guide needs one channel or none, the reader has the account of one: without any, `./ada up` starts all."""

REFERENCE = (
    *(
        "answers",
        "architecture",
        "cluster",
        "coming-from",
        "console",
        "dependencies",
        "events",
        "events-fields",
        "glossary",
        "high-availability",
        "identity-providers",
        "jobs-states",
        "keys",
        "requirements",
        "functions",
        "settings",
    ),
    *("scenarios-actions", "scenarios-modifiers", "scenarios-placeholders", "scenarios-states", "states"),
)
"""Pages without commands to follow."""

PORTS = {
    "docs/connect-sms.md": ("13000", "13001", "13002", "13013"),
    "docs/own-redis.md": ("6379",),
    "docs/managed-services.md": ("6379",),
}
"""Ports in a guide, in whose place others are used."""

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def installation(tmp_path: Path) -> Iterator[Reader]:
    """An `./ada up` without settings, as the guides begin."""
    first = Reader(tmp_path / "installation", {"ADA_WEBHOOK_ALLOW_PRIVATE": "1"})
    try:
        first.run("./ada up")
        yield first
    finally:
        first.close()


class Receiver(BaseHTTPRequestHandler):
    """A receiver of webhooks."""

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_POST(self) -> None:
        self.send_response(204)
        self.end_headers()


@pytest.fixture
def receiver() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/hook"
    server.shutdown()


def test_the_commands_of_guides_for_one_installation_work_in_their_order(
    installation: Reader, receiver: str, tmp_path: Path
) -> None:
    up, faults = installation.folder / "up.log", []
    for guide in IN_ONE_INSTALLATION:
        settings = {name: sandbox_of(up)[name] for name in guide.settings}
        reader = Reader(tmp_path / Path(guide.page).stem, settings, up, installation.port)
        reader.words["https://example.org/hook"] = receiver
        faults += guide.follow(reader)
    assert not faults, "\n".join(faults)


def sandbox_of(up: Path) -> Mapping[str, str]:
    """The settings of the sandbox of an `./ada up`."""
    with urlopen(f"{PAGE.findall(up.read_text())[-1]}state.json") as response:
        settings: dict[str, str] = json.load(response)["environment"]
    return settings


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, str]]:
    """The settings of a running sandbox."""
    folder = tmp_path_factory.mktemp("sandbox")
    process = AdaProcess(("sandbox", "--json"), {"ADA_DATA": str(folder / "data")}, folder / "log")
    yield asyncio.run(process.ready())["environment"]
    process.kill()


@pytest.mark.parametrize("guide", WITH_AN_ACCOUNT, ids=lambda guide: Path(guide.page).stem)
def test_the_commands_of_a_guide_to_an_account_work_at_a_simulated_provider(
    guide: Guide, sandbox: Mapping[str, str], tmp_path: Path
) -> None:
    settings = {name: sandbox[name] for name in guide.settings}
    reader = Reader(tmp_path / "folder", {"ADA_QUIET_HOURS": "off", **settings})
    words = {word: sandbox.get(own, own) for word, own in guide.words.items()}
    faults = replace(guide, words=words).follow(reader)
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("guide", ALONE, ids=lambda guide: Path(guide.page).stem)
def test_the_commands_of_a_guide_with_an_installation_of_its_own_work(
    guide: Guide, sandbox: Mapping[str, str], tmp_path: Path
) -> None:
    settings = {name: sandbox[name] for name in guide.settings}
    reader = Reader(tmp_path / "folder", {"ADA_QUIET_HOURS": "off", **settings})
    ports = {port: str(free_port()) for port in PORTS.get(guide.page, ())}
    reader.words |= {**ports, "redis-cli": f"redis-cli -p {ports.get('6379')}"}
    faults = guide.follow(reader)
    assert not faults, "\n".join(faults)


def test_what_a_reader_has_started_ends_with_the_reader(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "folder", {})
    reader.run("./ada sandbox")
    pid = int((reader.folder / ".sandbox.pid").read_text())
    assert not have_ended([pid])
    reader.close()
    await_sync(lambda: have_ended([pid]), what="the end of the sandbox")


GUIDES = (*IN_ONE_INSTALLATION, *WITH_AN_ACCOUNT, *ALONE)


def test_every_page_is_a_guide_that_is_run_or_has_no_commands() -> None:
    pages = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} | {"README.md"}
    assert pages == {guide.page for guide in GUIDES} | {f"docs/{name}.md" for name in REFERENCE}
    commands = re.compile(r"^ *(\./ada|curl) ", re.MULTILINE)
    assert [name for name in REFERENCE if commands.search((ROOT / "docs" / f"{name}.md").read_text())] == []


def unrun(commands: str, ran: str) -> list[str]:
    """The commands of a list that were not run, with any arguments in place of those in capitals."""
    found = [re.match(r"(\./ada(?: [a-z-]+)+)( [A-Z])?", line) for line in commands.splitlines()]
    patterns = {one[1]: rf"{re.escape(one[1])}{' ' if one[2] else r' *($|[>;|&])'}" for one in found if one}
    return [command for command, pattern in patterns.items() if not re.search(pattern, ran, re.MULTILINE)]


@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: Path(guide.page).stem)
def test_what_is_not_run_here_says_why_or_names_a_test_of_the_guide(guide: Guide) -> None:
    blocks = blocks_of(ROOT / guide.page)
    assert [block.line for block in blocks if block.mark == "not run" and not block.about] == []
    ran = "\n".join(f"{block.text}\n{block.about}" for block in blocks if block.mark in ("run", "do", "until"))
    assert [command for block in blocks if block.mark == "list" for command in unrun(block.text, ran)] == []
    named = {block.about for block in blocks if block.mark == "run by"}
    assert [test for test in named if Path(guide.page).name not in (ROOT / test).read_text()] == []
