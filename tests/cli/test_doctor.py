"""`./ada doctor` names groups of settings that reach nobody; with --sign-in it asks an SMS provider for the balance."""

import sys
from pathlib import Path

import pytest

from cli.commands.start.doctor import check_channel, check_retention
from cli.commands.start.people_findings import check_named_groups
from cli.services.api import log_unread_offices
from cli.settings.settings import load
from core.directory import Directory
from core.model.people import Group, User, UserChange
from couriers.channel import channels
from sandbox.sms.providers import PASSWORD, SmsProvidersServer
from sandbox.state import SandboxState
from tests.support.stack import Stack


@pytest.mark.parametrize(
    ("settings", "is_good", "detail"),
    [
        ({}, True, "signed in as sms.ru, balance 250.50"),
        ({"ADA_SMS_LOW_BALANCE": "1000"}, None, "signed in as sms.ru, balance 250.50"),
        ({"ADA_SMS_PASSWORD": "wrong"}, False, "SMS.ru does not accept the api_id: check ADA_SMS_PASSWORD"),
        ({"ADA_SMS_PROFILE": "nothing.yaml"}, False, "ADA_SMS_PROFILE is nothing.yaml, which is no file"),
    ],
)
async def test_the_doctor_shows_the_balance_and_warns_below_a_limit(
    tmp_path: Path, settings: dict[str, str], is_good: bool | None, detail: str
) -> None:
    server = SmsProvidersServer(SandboxState())
    await server.start()
    given = {"ADA_SMS_PROFILE": "sms.ru", "ADA_SMS_URL": server.url, "ADA_SMS_PASSWORD": PASSWORD}
    configuration = load({**given, "ADA_DATA": str(tmp_path), **settings}, tmp_path)
    finding = await check_channel(configuration, "sms", sign_in=True)
    assert finding.is_good is is_good
    assert finding.detail.startswith(detail)
    assert bool(finding.repair) == (is_good is None)
    await server.stop()


async def test_the_doctor_names_the_library_of_an_extra_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"ADA_APPRISE_ROOMS": "staff=json://127.0.0.1:1", "ADA_WEB_PUSH_CONTACT": "mailto:a@b.example"}
    for channel, library in (("apprise", "apprise"), ("web-push", "pywebpush")):
        monkeypatch.setitem(sys.modules, library, None)
        finding = await check_channel(load({**settings, "ADA_DATA": str(tmp_path)}, tmp_path), channel, sign_in=False)
        assert (finding.is_good, finding.detail) == (False, f"the library {library} is missing")
        assert finding.repair == f"pip install 'ada[{channel}]'"


@pytest.mark.parametrize("name", [name for name, one in channels().items() if one.no_account])
async def test_settings_of_a_channel_without_its_account_are_named(tmp_path: Path, name: str) -> None:
    """A price alone changes nothing, and nothing said so (39.33)."""
    unused = sorted(channels()[name].no_account)
    environment = {"ADA_DATA": str(tmp_path), **dict.fromkeys(unused, "1")}
    finding = await check_channel(load(environment, tmp_path), name, sign_in=False)
    assert finding.is_good is None
    assert finding.detail.startswith("not set up; without ADA_")
    assert finding.detail.endswith(f" nothing is done with {', '.join(unused)}")
    without = await check_channel(load({"ADA_DATA": str(tmp_path)}, tmp_path), name, sign_in=False)
    assert without.detail == "not set up"


@pytest.mark.parametrize(("threads", "is_good"), [("400d", True), ("36h", None)])
def test_the_doctor_shows_for_how_long_threads_are_kept(tmp_path: Path, threads: str, is_good: bool | None) -> None:
    found = check_retention(load({"ADA_THREADS_RETENTION": threads}, tmp_path).settings)
    shown = {"400d": "400 d", "36h": "1.5 d"}[threads]
    assert found.is_good is is_good
    assert f"histories 30 d, answers 30 d, threads {shown}" in found.detail


@pytest.mark.parametrize(("answers", "is_good"), [("2d", True), ("500d", None)])
def test_the_doctor_shows_for_how_long_answers_are_kept(tmp_path: Path, answers: str, is_good: bool | None) -> None:
    found = check_retention(load({"ADA_ANSWERS_RETENTION": answers}, tmp_path).settings)
    assert found.is_good is is_good
    assert f"answers {answers[:-1]} d" in found.detail


async def test_a_group_of_a_setting_that_is_unknown_or_empty_is_named(stack: Stack, tmp_path: Path) -> None:
    settings = load({"ADA_OPERATORS": "admins", "ADA_OFFICE": "dean", "ADA_BOT_TENANT": "school"}, tmp_path).settings
    groups = Directory(stack.store).groups
    found = [one async for one in check_named_groups(stack.store, settings)]
    assert [(one.what, one.is_good) for one in found] == [("operators", False), ("office", False)]
    assert (
        found[0].detail == "there is no group 'admins' in the tenant 'school': nobody is informed when a channel stops"
    )
    await Directory(stack.store).users.create("school", User(1))
    await groups.create("school", Group("admins"), [1])
    await groups.create("school", Group("dean"))
    found = [one async for one in check_named_groups(stack.store, settings)]
    assert [(one.what, one.is_good) for one in found] == [("operators", True), ("office", False)]
    assert found[1].detail.startswith("the group 'dean' has no members: nobody gets")
    users = Directory(stack.store).users
    await users.create("school", User(2, role="student"))
    await groups.add_members("school", "dean", [2])
    found = [one async for one in check_named_groups(stack.store, settings)]
    assert (found[1].is_good, found[1].repair) == (False, "./ada user change ID --role staff")
    assert found[1].detail.startswith("no member of the group 'dean' is trainer, staff or admin: nobody gets")
    await users.update("school", 2, UserChange(role="trainer"))
    found = [one async for one in check_named_groups(stack.store, settings)]
    assert (found[1].is_good, found[1].detail) == (True, "the members of the group 'dean'")


async def test_the_office_of_each_tenant_with_a_bot_is_checked_and_unread_ones_are_in_the_log(
    stack: Stack, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for tenant in ("north", "south"):
        (tmp_path / tenant / "scenarios").mkdir(parents=True)
    settings = load({"ADA_OFFICE": "dean", "ADA_SCENARIOS": str(tmp_path)}, tmp_path).settings
    directory = Directory(stack.store)
    await directory.groups.create("south", Group("dean"))
    found = [one async for one in check_named_groups(stack.store, settings)]
    assert [(one.what, one.is_good) for one in found] == [
        ("office", False),
        ("office of north", None),
        ("office of south", False),
    ]
    await log_unread_offices(directory, settings)
    assert [one.getMessage() for one in caplog.records] == [
        f"ADA_OFFICE: {one.detail}" for one in found if one.is_good is False
    ]
