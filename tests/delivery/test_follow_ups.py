"""Follow-ups over HTTP: a new delivery to those whom another one did not reach, or who did not answer it (D-50)."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from core.model.states import Reason
from couriers.sending.interface import Deferred, Message, Outcome, Rejected, Sent
from tests.delivery.conftest import Api, Couriers, delivery_body
from tests.delivery.test_deliveries import finished
from tests.support.stack import sent
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize("shards", [1, 2])

PEOPLE = [{"id": n} for n in range(4)]
BLOCKED = ("100001", "100002")


@pytest.fixture(autouse=True)
async def people(api: Api) -> None:
    """Four people of the directory."""
    for n in range(4):
        contacts = {"telegram": f"10000{n}", "sms": f"+7999000000{n}"}
        await api.call("POST", "/v1/users", {"id": n, "name": f"Person {n}", "contacts": contacts})


def blocked(message: Message) -> Outcome:
    """Persons 1 and 2 have blocked the bot."""
    return Rejected(Reason.BLOCKED) if message.address in BLOCKED else Sent("r")


def first_body(**more: Any) -> dict[str, Any]:
    return delivery_body(recipients=PEOPLE, channels=["telegram"], **more)


def follow_up(where: str, **more: Any) -> dict[str, Any]:
    given = {"follow_up": where.rpartition("/")[2], **more.pop("whom", {})}
    return delivery_body(recipients=[given], **{"channels": ["sms"], **more})


async def sent_to(api: Api, body: dict[str, Any]) -> str:
    made = await api.call("POST", "/v1/deliveries", body)
    assert made.status == 202, made
    return str(made.headers["Location"])


def outcomes(history: dict[str, Any], channel: str) -> dict[int, tuple[str, str | None]]:
    return {
        one["id"]: (one["outcomes"][channel]["status"], one["outcomes"][channel].get("reason"))
        for one in history["recipients"]
    }


async def test_a_follow_up_goes_to_the_people_who_were_not_reached_and_both_are_linked(
    api: Api, courier: Couriers
) -> None:
    await courier("telegram", blocked)
    sms = await courier("sms")
    first = await sent_to(api, first_body())
    await finished(api, first)
    shown = (await api.call("POST", "/v1/deliveries/preview", follow_up(first))).json
    identity = first.rpartition("/")[2]
    assert shown["people"] == 2
    assert shown["follow_up"] == {
        "id": identity, "of": "unreached", "left_out": {"reached_meanwhile": 2}, "waiting": 0
    }  # fmt: skip
    second = await sent_to(api, follow_up(first))
    history = await finished(api, second)
    assert [one["id"] for one in history["recipients"]] == [1, 2]
    assert sorted(sms.addresses) == ["+79990000001", "+79990000002"]
    assert history["follows"] == {"id": identity, "of": "unreached"}
    found = (await api.call("GET", first)).json
    assert found["followed_by"] == [{"id": history["id"], "of": "unreached"}]
    again = await api.call("POST", "/v1/deliveries", follow_up(first))
    assert again.code == "NOBODY_LEFT", "the follow-up has reached them"


async def test_whoever_is_reached_meanwhile_is_left_out_when_the_follow_up_is_sent(api: Api, courier: Couriers) -> None:
    let_go = asyncio.Event()

    async def slowly(message: Message) -> Outcome:
        await let_go.wait()
        return blocked(message)

    await courier("telegram", slowly)
    first = await sent_to(api, first_body())
    shown = (await api.call("POST", "/v1/deliveries/preview", follow_up(first))).json
    assert (shown["people"], shown["follow_up"]["waiting"]) == (4, 4)
    second = await sent_to(api, follow_up(first))  # the courier for sms is not there yet
    third = await sent_to(api, follow_up(second, channels=["vk", "sms"]))
    let_go.set()
    await finished(api, first)
    sms = await courier("sms")
    history = await finished(api, second)
    left_out = ("skipped", "reached_meanwhile")
    assert outcomes(history, "sms") == {0: left_out, 1: ("sent", None), 2: ("sent", None), 3: left_out}
    assert (history["verdict"], history["left_out"], history["counts"]["reached"]) == ("all_reached", 2, 2)
    history = await finished(api, third)
    assert set(outcomes(history, "sms").values()) == {left_out}, "all have it by now, of three deliveries"
    assert (history["verdict"], history["left_out"]) == ("all_reached", 4)
    assert sorted(sms.addresses) == ["+79990000001", "+79990000002"]


async def test_a_follow_up_of_the_unanswered_leaves_out_who_answers_before_it_is_sent(
    api: Api, courier: Couriers
) -> None:
    await courier("telegram")
    options = [{"key": "yes", "text": "Yes"}, {"key": "no", "text": "No"}]
    first = await sent_to(api, first_body(answer={"kind": "choice", "options": options}))
    await finished(api, first)
    await api.call("POST", f"{first}/answers", {"recipient": 0, "value": "yes"})
    body = follow_up(first, whom={"of": "unanswered"})
    shown = (await api.call("POST", "/v1/deliveries/preview", body)).json
    assert (shown["people"], shown["follow_up"]["left_out"]) == (3, {"answered": 1})
    second = await sent_to(api, body)
    await api.call("POST", f"{first}/answers", {"recipient": 3, "value": "no"})
    sms = await courier("sms")
    history = await finished(api, second)
    assert outcomes(history, "sms") == {1: ("sent", None), 2: ("sent", None), 3: ("skipped", "answered")}
    assert len(sms.addresses) == 2


async def test_a_follow_up_in_order_leaves_people_out_of_every_channel(api: Api, courier: Couriers) -> None:
    await courier("telegram", blocked)
    first = await sent_to(api, first_body())
    second = await sent_to(api, follow_up(first, channels=["vk", "sms"], strategy="first"))
    await finished(api, first)
    sms = await courier("sms")
    history = await finished(api, second)
    reached = [one for one, (status, _) in outcomes(history, "sms").items() if status == "sent"]
    assert reached == [1, 2]
    assert sorted(sms.addresses) == ["+79990000001", "+79990000002"]


async def test_an_attempt_that_was_made_is_never_said_to_be_left_out(api: Api, courier: Couriers) -> None:
    """The first delivery reaches the person, after a retry, while the follow-up is being sent."""
    let_go, asked = asyncio.Event(), asyncio.Event()

    async def slowly(message: Message) -> Outcome:
        if asked.is_set():
            return Sent("r")
        asked.set()
        await let_go.wait()
        return Deferred(Reason.PROVIDER_DOWN)

    answers = [Rejected(Reason.BLOCKED), Sent("r")]
    await courier("telegram", lambda message: answers.pop(0))
    sms = await courier("sms", slowly)
    first = await sent_to(api, first_body() | {"recipients": PEOPLE[1:2]})
    await finished(api, first)
    second = await sent_to(api, follow_up(first))
    await asked.wait()
    assert (await api.call("POST", f"{first}/retry", {})).json == {"queued": 1}
    await finished(api, first)
    let_go.set()
    history = await finished(api, second)
    assert outcomes(history, "sms") == {1: ("sent", None)}
    assert len(sms.addresses) == 2


async def test_the_values_and_the_contacts_of_the_first_delivery_serve_again(api: Api, courier: Couriers) -> None:
    await courier("telegram", blocked)
    sms = await courier("sms")
    contacts = {"telegram": "100001", "sms": "+79995550000"}
    people: list[dict[str, Any]] = [one | {"values": {"mark": one["id"]}} for one in PEOPLE]
    people[1] = {"id": "guest", "contacts": contacts, "values": {"mark": 5}}
    body = {"recipients": people, "channels": ["telegram", "sms"], "strategy": "first"}
    await courier("vk")
    sms.respond = lambda message: Rejected(Reason.RECIPIENT_UNREACHABLE)
    first = await sent_to(api, first_body(text="Mark {{mark}}") | body)
    await finished(api, first)
    sms.respond = sent
    sms.attempted.clear()
    await api.call("PATCH", "/v1/users/2", {"contacts": {"sms": ["+79990000022"]}})
    history = await finished(api, await sent_to(api, follow_up(first, text="Again {{mark}}")))
    assert [one["text"] for one in history["recipients"]] == ["Again 5", "Again 2"]
    assert sorted(sms.addresses) == ["+79990000022", "+79995550000"]


REFUSED: list[tuple[str, Callable[[str], dict[str, Any]]]] = [
    ("FOLLOW_UP_ALONE", lambda where: follow_up(where) | {"recipients": [*follow_up(where)["recipients"], {"id": 1}]}),
    ("RECIPIENT_AMBIGUOUS", lambda where: follow_up(where, whom={"id": 1})),
    ("RECIPIENT_AMBIGUOUS", lambda where: delivery_body(recipients=[{"id": 1, "of": "unreached"}])),
    ("RECIPIENT_AMBIGUOUS", lambda where: follow_up(where, whom={"values": {"a": 1}})),
    ("WRONG_VALUE", lambda where: follow_up(where, whom={"of": "everybody"})),
    ("FOLLOWED_ASKS_NOTHING", lambda where: follow_up(where, whom={"of": "unanswered"})),
    ("FOLLOWED_NOT_FOUND", lambda where: follow_up("0.1.1763712000000000000")),
    ("HISTORY_KEY_MALFORMED", lambda where: follow_up("nothing")),
    ("FOLLOW_UP_LANE", lambda where: follow_up(where, lane="other")),
]


async def test_a_wrong_follow_up_is_refused_by_its_code(api: Api, courier: Couriers) -> None:
    await courier("telegram", blocked)
    first = await sent_to(api, first_body())
    await finished(api, first)
    before = await api.keys()
    for code, body in REFUSED:
        for path in ("/v1/deliveries", "/v1/deliveries/preview"):
            refused = await api.call("POST", path, body(first))
            codes = {refused.code, *(error["code"] for error in refused.json.get("errors", ()))}
            assert code in codes, (code, refused)
    assert await api.keys() == before
    later = await sent_to(api, first_body(deliver_at="2030-01-01T09:00:00Z", far=True))
    refused = await api.call("POST", "/v1/deliveries", follow_up(later))
    assert (refused.status, refused.code) == (409, "NOT_RELEASED")


async def test_a_follow_up_with_a_lane_an_idempotency_key_and_a_quota_stands_beside_its_first(
    api: Api, courier: Couriers
) -> None:
    await courier("telegram", blocked)
    sms = await courier("sms")
    first = await sent_to(api, first_body(lane="exam"))
    await finished(api, first)
    body, keys = follow_up(first, lane="exam"), [{"Idempotency-Key": str(n)} for n in range(4)]
    made = [await api.call("POST", "/v1/deliveries", body, headers=keys[0]) for _ in range(2)]
    assert made[0].json == made[1].json
    await until(lambda: len(sms.addresses) == 2)
    assert made[0].json["id"].split(".")[0] == first.rpartition("/")[2].split(".")[0]


async def test_a_follow_up_goes_to_an_address_that_has_become_a_persons_and_the_next_one_leaves_it_out(
    api: Api, courier: Couriers
) -> None:
    telegram = await courier("telegram", blocked)
    people = ["telegram:100001", "telegram:100009", {"id": 9, "contacts": {"telegram": "100002"}}]
    assert (await api.call("PATCH", "/v1/users/1", {"contacts": {"telegram": []}})).status == 200
    first = await sent_to(api, delivery_body(recipients=people, channels=["telegram"]))
    await finished(api, first)
    assert (await api.call("PATCH", "/v1/users/1", {"contacts": {"telegram": "100001"}})).status == 200
    body = {**follow_up(first), "channels": ["telegram"]}
    telegram.respond = sent
    history = await finished(api, await sent_to(api, body))
    assert outcomes(history, "telegram") == {1: ("sent", None), 9: ("sent", None)}
    assert (await api.call("POST", "/v1/deliveries", body)).code == "NOBODY_LEFT"
