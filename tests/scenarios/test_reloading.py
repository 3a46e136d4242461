"""A changed file is in force without a restart; a broken one is reported, and the last good version stays active."""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from core.errors import SetupError
from core.redis.cancel_and_wait import cancel_and_wait
from scenarios.execution.active_bot import ActiveBot, watch
from tests.support.waiting import until

HELLO = "start: {actions: [{type: send, text: hello}]}\n"
CHANGED = "start: {actions: [{type: send, text: changed}]}\n"
BROKEN = "start: {actions: [\n"
MISTAKEN = "start:\n  actions:\n    - {type: sned, text: hello}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "bot"
    (folder / "scenarios").mkdir(parents=True)
    (folder / "triggers.yaml").write_text('text: {exact: {"/start": start}}\n')
    write(folder, HELLO)
    return folder


def write(folder: Path, text: str) -> None:
    (folder / "scenarios" / "menu.yaml").write_text(text)


def text_of(active: ActiveBot) -> str:
    return str(active.bot.scenarios["menu.start"].actions[0].fields["text"])


@asynccontextmanager
async def watched(active: ActiveBot) -> AsyncIterator[None]:
    watching = asyncio.create_task(watch(lambda: [active], every=0.05))
    try:
        yield
    finally:
        await cancel_and_wait(watching)


async def test_a_changed_file_is_in_force_without_a_restart(folder: Path) -> None:
    active, changes = ActiveBot(folder), list[str]()
    active.on_change(lambda: changes.append(active.version))
    first = active.version
    async with watched(active):
        write(folder, CHANGED)
        await until(lambda: text_of(active) == "changed")
        (folder / "scenarios" / "second.yaml").write_text("more: {actions: []}\n")
        await until(lambda: "second.more" in active.bot.scenarios)
    assert first not in changes
    assert changes[-1] == active.version


async def test_a_moment_that_has_passed_is_an_error_and_stops_no_running_bot(folder: Path) -> None:
    active = ActiveBot(folder)
    async with watched(active):
        write(folder, CHANGED.replace("text: changed", "text: changed, deliver_at: 2020-01-01 10:00"))
        await until(lambda: text_of(active) == "changed")
    assert [(one.severity, one.code) for one in active.problems] == [("error", "IN_THE_PAST")]


@pytest.mark.parametrize(("text", "place"), [(BROKEN, "menu.yaml:2:1"), (MISTAKEN, "menu.yaml:3:14")])
async def test_a_broken_file_is_reported_with_its_place_and_the_last_good_version_stays(
    folder: Path, caplog: pytest.LogCaptureFixture, text: str, place: str
) -> None:
    active = ActiveBot(folder)
    good = active.version
    async with watched(active):
        write(folder, text)
        await until(lambda: "stays active" in caplog.text)
        assert (active.version, text_of(active)) == (good, "hello")
        write(folder, CHANGED)
        await until(lambda: text_of(active) == "changed")
    (complaint,) = [line for line in caplog.messages if "menu.yaml" in line]
    assert place in complaint


async def test_a_folder_that_vanishes_and_comes_back_is_read_again(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    active = ActiveBot(folder)
    async with watched(active):
        shutil.move(folder, folder.with_name("away"))
        await until(lambda: "is not a folder" in caplog.text)
        assert text_of(active) == "hello"
        shutil.move(folder.with_name("away"), folder)
        write(folder, CHANGED)
        await until(lambda: text_of(active) == "changed")


async def test_a_bot_with_mistakes_at_the_start_runs_as_far_as_it_can_be_read(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    (folder / "triggers.yaml").write_text("text:\n  regex: {'(': start}\n  exact: {hi: start}\n")
    active = ActiveBot(folder)
    assert [trigger.key for trigger in active.bot.triggers.text["exact"]] == ["hi"]
    assert "triggers.yaml:2:11: BAD_PATTERN" in caplog.text
    async with watched(active):
        write(folder, CHANGED)
        await until(lambda: text_of(active) == "changed")


def test_the_version_is_that_of_the_files_wherever_they_are(folder: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    assert ActiveBot(folder).version == ActiveBot(copy).version
    write(copy, "start: {actions: [{text: hello, type: send}]}\n")
    assert ActiveBot(folder).version != ActiveBot(copy).version, "the order of fields may matter"


def test_the_version_says_nothing_of_a_file_to_which_a_link_leads_out(folder: Path, tmp_path: Path) -> None:
    (folder / "scenarios" / "link.yaml").symlink_to(tmp_path / "secrets")
    versions = set()
    for secret in ("one", "another"):
        (tmp_path / "secrets").write_text(secret)
        versions.add(ActiveBot(folder).version)
    assert len(versions) == 1


def test_there_must_be_a_folder(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="is not a folder"):
        ActiveBot(tmp_path / "missing")
