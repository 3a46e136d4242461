"""The preview of a delivery: it writes nothing, and says what a send of the same body does."""

from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest

from core.deliveries.channels import ChannelFacts
from core.model.content import Display, Feature, Limits
from core.model.delivery import Quota
from core.model.hours import QuietHours, TenantQuietHours
from core.model.people import Group, User
from core.orders import Sending, SendingPolicy
from couriers.sending.shown import display_of
from couriers.telegram_bot.courier import TelegramBot
from couriers.vk.courier import Vk
from delivery.http.context import ApiServices
from tests.delivery.conftest import Api, ApiResponse, Couriers, delivery_body
from tests.delivery.test_deliveries import finished

NIGHT = datetime(2030, 1, 1, 23, 30, tzinfo=UTC)
SMS = Display(as_text=frozenset({Feature.INLINE, Feature.REPLY}), limits=Limits(in_sms=True, price="4.20 ₽"))
PREVIEW = "/v1/deliveries/preview"


@pytest.fixture
def services(services: ApiServices) -> ApiServices:
    """A trainer has a quota, and nothing is sent between 23:00 and 07:00 UTC of 2030."""
    policy = SendingPolicy({"trainer": Quota(4, timedelta(days=1))}, TenantQuietHours(QuietHours(time(23), time(7))))
    core = services.core
    sending = Sending(core.store, core.deliveries, core.directory, policy, clock=lambda: NIGHT.replace(hour=12))
    return replace(services, core=replace(core, sending=sending))


@pytest.fixture
async def school(api: Api) -> Api:
    """Two groups with a person in both, one without contacts, and one that wants no messages."""
    directory = api.services.core.directory
    for user in (
        User(42, "Иванов", role="trainer"),
        User(1, "Аня, комната 2", contacts={"telegram": ["100001"], "sms": ["+79990000001"]}),
        User(2, "Боря", contacts={"sms": ["+79990000002", "+79990000003"]}),
        User(3, "Вася"),
        User(4, "Галя", contacts={"telegram": ["100004"]}, opt_out=["telegram"]),
    ):
        await directory.users.create("default", user)
    await directory.groups.create("default", Group("ИВТ-21"), [1, 2, 3])
    await directory.groups.create("default", Group("ИВТ-22"), [1, 4])
    for group in ("ИВТ-21", "ИВТ-22"):
        await directory.ownerships.own("default", 42, "group", group)
    return api


def body(**more: Any) -> dict[str, Any]:
    groups = [{"group": "ИВТ-21"}, {"group": "ИВТ-22"}]
    return {"sender": {"id": 42, "role": "trainer"}, "text": "Пары не будет", "recipients": groups, **more}


async def previewed(api: Api, asked: dict[str, Any], query: str = "") -> dict[str, Any]:
    """The preview; asserts that it has written nothing."""
    before = await api.keys()
    response = await api.call("POST", PREVIEW + query, asked)
    assert response.status == 200, response
    assert await api.keys() == before
    found: dict[str, Any] = response.json
    return found


async def test_a_preview_says_what_the_send_does(school: Api, courier: Couriers) -> None:
    telegram, sms = await courier("telegram"), await courier("sms")
    asked = body(channels=["telegram", "sms"])
    said = await previewed(school, asked)
    made = await school.call("POST", "/v1/deliveries", asked)
    done = await finished(school, made.headers["Location"])
    assert said["people"] == done["counts"]["recipients"] == 4
    sent = {"telegram": telegram.attempted, "sms": sms.attempted}
    for channel, messages in sent.items():
        assert said["channels"][channel]["addresses"] == len(messages)
        assert {message.text for message in messages} == {said["shown"][channel]["messages"][0]["text"]}
    assert said["channels"]["telegram"]["people"] == done["channels"]["telegram"]["sent"]
    assert (said["no_contact"], said["opted_out"], said["duplicates"]) == (1, 1, 1)
    assert [(one["name"], one["why"]) for one in said["unreachable"]] == [("Вася", "no_contact"), ("Галя", "opted_out")]
    used = (await school.call("GET", "/v1/quota?sender=42&role=trainer")).json
    assert (said["quota"]["left"], said["quota"]["allowed"]) == (used["limit"] - used["used"], True)


async def test_quiet_hours_move_the_preview_as_they_move_the_send(school: Api) -> None:
    asked = body(deliver_at="2030-01-01T23:30:00Z", far=True, channels=["sms"])
    said, made = await previewed(school, asked), await school.call("POST", "/v1/deliveries", asked)
    assert said["moved_from"] == made.json["moved_from"] == "2030-01-01T23:30:00Z"
    for at in (said["deliver_at"], made.json["deliver_at"]):
        assert "2030-01-02T07:00" <= at < "2030-01-02T07:06"


async def test_a_spent_quota_is_said_before_the_send_is_refused(school: Api) -> None:
    asked = body(channels=["sms"], deliver_at="2030-01-05T12:00:00Z", far=True)
    for _ in range(4):
        await school.call("POST", "/v1/deliveries", asked)
    quota = (await previewed(school, asked))["quota"]
    assert (quota["used"], quota["left"], quota["allowed"]) == (4, 0, False)
    assert quota["resets_in"] > 86_000
    assert (await school.call("POST", "/v1/deliveries", asked)).code == "QUOTA_EXCEEDED"


async def test_one_person_is_shown_only_the_channels_that_reach_it(school: Api) -> None:
    asked = body(channels=["telegram", "sms"], strategy="first")
    said = await previewed(school, asked, "?recipient=2")
    assert said["recipient"] == {"id": 2, "name": "Боря", "channels": ["sms"], "number": 1}
    assert list(said["shown"]) == ["sms"]
    assert said["channels"]["sms"]["people"] == 2
    assert said["channels"]["sms"]["first"] == 1
    assert (await previewed(school, asked, "?recipient=%D0%B1%D0%9E%D1%80"))["recipient"]["id"] == 2, "by its name"
    missing = await school.call("POST", PREVIEW + "?recipient=77", asked)
    assert (missing.status, missing.code) == (404, "RECIPIENT_NOT_FOUND")


BUTTONS = {
    "parse_mode": "HTML",
    "inline": [[{"text": "Приду", "data": "yes"}, {"text": "Сайт", "url": "https://a.ru"}]],
}


async def test_each_channel_is_shown_as_its_courier_renders_it(school: Api) -> None:
    """Buttons stay buttons where the channel has them, and become numbered lines elsewhere, as in the courier."""
    channels = school.services.core.channels
    shown = {"telegram-bot": display_of(object.__new__(TelegramBot)), "vk": display_of(object.__new__(Vk)), "sms": SMS}
    for channel, display in shown.items():
        await channels.register(channel, ChannelFacts(100), display=display)
    await channels.read()
    people = [{"id": 1, "contacts": {"telegram-bot": "100001", "vk": "200001", "sms": "+79990000001"}}]
    asked = body(recipients=people, text="<b>Собрание</b> в 10", content=BUTTONS, channels=list(shown))
    said = (await previewed(school, asked))["shown"]
    bold = [{"kind": "bold", "offset": 0, "length": 8, "target": ""}]
    assert said["telegram-bot"]["messages"] == [{"text": "Собрание в 10", "spans": bold}]
    assert [button["text"] for button in said["telegram-bot"]["buttons"][0]] == ["Приду", "Сайт"]
    assert said["vk"]["messages"][0]["spans"] == []
    assert said["vk"]["not_shown"] == ["parse_mode"]
    assert said["sms"]["messages"][0]["text"] == "Собрание в 10\n1. Приду\nСайт: https://a.ru"
    assert (said["sms"]["choices"], said["sms"]["buttons"]) == (1, [])


async def test_the_parts_and_the_price_of_an_sms_are_said(school: Api) -> None:
    await school.services.core.channels.register("sms", ChannelFacts(100), display=SMS)
    said = await previewed(school, body(text="я" * 71, channels=["sms"]))
    assert said["channels"]["sms"] == {"people": 2, "addresses": 3, "parts": 2, "total_parts": 6, "price": "4.20 ₽"}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"text": ""}, "TEXT_EMPTY"),
        ({"recipients": [{"group": "ИВТ-99"}]}, "GROUP_NOT_FOUND"),
        ({"recipients": [{"id": 99}]}, "USER_NOT_FOUND"),
        ({"urgnt": True}, "UNKNOWN_FIELD"),
        ({"content": {"parse_mode": "HTML"}, "text": "<b>a"}, "MARKS_BROKEN"),
    ],
)
async def test_a_preview_refuses_what_the_send_refuses(school: Api, change: dict[str, Any], code: str) -> None:
    answers = [await school.call("POST", path, body(**change)) for path in (PREVIEW, "/v1/deliveries")]
    assert [_codes(answer) for answer in answers] == [[code], [code]]


def _codes(answer: ApiResponse) -> list[str]:
    return [error["code"] for error in answer.json.get("errors", [])] or [answer.code]


async def test_a_long_text_is_shown_in_the_parts_that_are_sent(school: Api) -> None:
    display = display_of(object.__new__(TelegramBot))
    await school.services.core.channels.register("telegram", ChannelFacts(100), display=display)
    asked = delivery_body(text="слово " * 682 + "😀" * 4, channels=["telegram"])
    shown = (await previewed(school, asked))["shown"]["telegram"]
    assert [len(one["text"]) for one in shown["messages"]] == [4092, 4]
    assert "".join(one["text"] for one in shown["messages"]) == asked["text"]


async def test_channels_are_listed_with_what_they_show_and_their_throttles(api: Api, courier: Couriers) -> None:
    await courier("pigeon")
    await api.services.core.channels.register("sms", ChannelFacts(100, halted="the account is blocked"), display=SMS)
    await api.services.core.queue.throttle("pigeon", "account:ada", timedelta(minutes=5))
    found = {one["channel"]: one for one in (await api.call("GET", "/v1/channels")).json["channels"]}
    assert (found["vk"]["known"], found["pigeon"]["known"]) == (False, True)
    assert found["sms"]["halted"] == "the account is blocked"
    assert found["sms"]["limits"]["in_sms"]
    assert found["sms"]["limits"]["price"] == "4.20 ₽"
    assert [one["scope"] for one in found["pigeon"]["throttles"]] == ["account:ada"]
    assert found["pigeon"]["throttles"][0]["until"] > datetime.now(UTC).strftime("%FT%T")
