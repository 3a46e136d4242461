"""`./ada doctor` names groups of settings that reach nobody; with --sign-in it asks an SMS provider for the balance."""

import sys
from pathlib import Path

import pytest

from cli.commands.start.doctor import check_channel, check_retention
from cli.commands.start.people_findings import check_named_groups, check_tenants
from cli.services.api import log_unread_offices
from cli.settings.settings import load
from core.admission.api_keys import ApiKeys
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


KANNEL = {
    "ADA_SMS_URL": "http://127.0.0.1:1/cgi-bin/sendsms",
    "ADA_SMS_USERNAME": "ada",
    "ADA_SMS_PASSWORD": "hunter2",
    "ADA_SMS_FROM": "Ada",
}


@pytest.mark.parametrize(
    ("channel", "settings", "fault"),
    [
        ("email", {"ADA_SMTP_URL": "smtp://user:hunter2@[bad:99999"}, "ADA_SMTP_URL is not a URL"),
        ("email", {"ADA_SMTP_URL": "smtp://h?form=hunter2"}, "ADA_SMTP_URL has the unknown parameter form"),
        ("sms", {**KANNEL, "ADA_SMS_URL": "127.0.0.1:1/x"}, "ADA_SMS_URL is not a URL"),
        ("sms", {**KANNEL, "ADA_SMS_CALLBACK_URL": "foo"}, "ADA_SMS_CALLBACK_URL is not a URL"),
        ("sms", {**KANNEL, "ADA_SMS_MOST_PARTS": "0"}, "ADA_SMS_MOST_PARTS must be 1 to 255"),
        ("sms", {**KANNEL, "ADA_SMS_MOST_PARTS": "256"}, "ADA_SMS_MOST_PARTS must be 1 to 255"),
        ("sms", {**KANNEL, "ADA_SMS_PRICE": "abc"}, "ADA_SMS_PRICE must have a number, such as 4.20 ₽"),
        ("telegram-bot", {"ADA_BOT_TOKEN": "hunter2"}, "ADA_BOT_TOKEN is not a token"),
        ("telegram-bot", {"ADA_BOT_TOKEN": "5:hun ter2"}, "ADA_BOT_TOKEN is not a token"),
        ("telegram-bot", {"ADA_BOT_TOKEN": "5:hun/ter2"}, "ADA_BOT_TOKEN is not a token"),
        ("max", {"ADA_MAX_TOKEN": "hunter2\nhunter2"}, "ADA_MAX_TOKEN (in the environment) has a line break"),
        (
            "sms",
            {**KANNEL, "ADA_SMS_PASSWORD": "hunter2\u200b"},
            "ADA_SMS_PASSWORD (in the environment) has a line break",
        ),
        ("telegram-bot", {"ADA_BOT_TOKEN": "5:x", "ADA_BOT_API_URL": "h"}, "ADA_BOT_API_URL is not a URL"),
        ("vk", {"ADA_VK_TOKEN": "t", "ADA_VK_API_URL": "h"}, "ADA_VK_API_URL is not a URL"),
        ("max", {"ADA_MAX_TOKEN": "t", "ADA_MAX_API_URL": "h"}, "ADA_MAX_API_URL is not a URL"),
        ("sms", {**KANNEL, "ADA_SMS_MOST_PARTS": "1", "ADA_SMS_PRICE": "4,20 ₽"}, None),
        ("email", {"ADA_SMTP_URL": "smtp://h"}, None),
        ("telegram-bot", {"ADA_BOT_TOKEN": "5:x"}, None),
        ("vk", {"ADA_VK_TOKEN": "t"}, None),
        ("max", {"ADA_MAX_TOKEN": "t"}, None),
    ],
)
async def test_settings_with_which_a_courier_cannot_start_are_named_without_signing_in(
    tmp_path: Path, channel: str, settings: dict[str, str], fault: str | None
) -> None:
    finding = await check_channel(load({"ADA_DATA": str(tmp_path), **settings}, tmp_path), channel, sign_in=False)
    assert finding.is_good is (fault is None)
    assert finding.detail.startswith(fault or "settings are complete")
    assert "hunter2" not in str(finding)


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


async def test_a_tenant_of_a_setting_in_which_there_is_nothing_is_named(stack: Stack, tmp_path: Path) -> None:
    directory = Directory(stack.store)
    await directory.users.create("north", User(1))
    await directory.groups.create("south", Group("dean"))
    await ApiKeys(stack.store).create("of east", ["read"], "east")

    async def named(**settings: str) -> list[tuple[bool | None, str]]:
        found = [one async for one in check_tenants(stack.store, load(settings, tmp_path).settings)]
        assert {one.what for one in found} <= {"tenants"}
        return [(one.is_good, one.detail.partition(",")[0]) for one in found]

    assert await named() == []
    assert await named(ADA_STAFF_WRITES_TO_ALL="default,north,south,east", ADA_BOT_TENANT="south") == []
    wrong = {"ADA_STAFF_WRITES_TO_ALL": "nort,north", "ADA_TENANT_TIMEZONES": "east=UTC,scool=UTC"}
    assert await named(**wrong, ADA_BOT_TENANT="nope") == [
        (None, "ADA_BOT_TENANT names 'nope'"),
        (None, "ADA_STAFF_WRITES_TO_ALL names 'nort'"),
        (None, "ADA_TENANT_TIMEZONES names 'scool'"),
    ]
