"""Deliveries over HTTP: enqueue, show, list, reschedule, cancel, retry."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.model.states import Reason
from couriers.sending.interface import Message, Outcome, Rejected, Sent
from tests.delivery.conftest import Api, Couriers, delivery_body
from tests.delivery.test_bulk import bulk, ndjson
from tests.support.waiting import until

LATER = "2030-01-01T00:00:00+03:00"
BOTH = ["telegram", "sms"]


def _in(**by: float) -> str:
    return f"{datetime.now(UTC) + timedelta(**by):%FT%TZ}"


async def finished(api: Api, where: str) -> dict[str, Any]:
    async def is_over() -> bool:
        return (await api.call("GET", where)).json["finished_at"] is not None

    await until(is_over)
    result: dict[str, Any] = (await api.call("GET", where)).json
    return result


async def test_a_delivery_is_accepted_with_its_location(api: Api) -> None:
    response = await api.call("POST", "/v1/deliveries", delivery_body())
    assert response.status == 202
    assert response.json.keys() == {"id", "history_key", "state", "deliver_at", "moved_from", "recipients"}
    assert response.headers["Location"] == f"/v1/deliveries/{response.json['id']}"
    assert (response.json["state"], response.json["recipients"], response.json["moved_from"]) == ("released", 1, None)


async def test_the_history_has_the_outcome_of_every_recipient(api: Api, courier: Couriers) -> None:
    await courier("telegram")
    await courier("sms", lambda message: Rejected(Reason.RECIPIENT_UNREACHABLE))
    people = [
        {"id": 1, "name": "Петя", "contacts": {"telegram": "100001", "sms": ["+79990000001"]}},
        {"id": "two", "contacts": {"sms": "+79990000002"}},
        {"id": 3, "contacts": {}},
    ]
    sender = {"id": 42, "name": "Иванов И. И.", "role": "trainer"}
    body = delivery_body(sender=sender, recipients=people, channels=BOTH, origin="web", tags=["exam"])
    made = await api.call("POST", "/v1/deliveries", body)
    result = await finished(api, made.headers["Location"])
    assert (result["sender"], result["text"], result["origin"], result["tags"]) == (
        sender,
        body["text"],
        "web",
        ["exam"],
    )
    assert (result["state"], result["verdict"], result["lane"], result["next"]) == (
        "finished",
        "some_reached",
        None,
        None,
    )
    first, second, third = result["recipients"]
    assert (first["id"], first["name"], first["received_in"]) == (1, "Петя", ["telegram"])
    assert first["outcomes"]["telegram"].items() >= {"status": "sent", "reference": "ref-100001", "attempts": 1}.items()
    assert first["outcomes"]["sms"].items() >= {"status": "failed", "reason": "recipient_unreachable"}.items()
    assert (second["id"], second["received_in"]) == ("two", [])
    assert second["outcomes"]["telegram"] == {"status": "no_contact"}
    assert (third["id"], third["origin"], third["received_in"]) == (3, [], [])
    assert result["channels"] == {
        "telegram": {"state": "reported", "sent": 1, "no_contact": 2},
        "sms": {"state": "reported", "failed": 2, "no_contact": 1},
    }
    assert result["counts"].items() >= {"recipients": 3, "reached": 1, "sent": 1, "failed": 2, "no_contact": 3}.items()


@pytest.mark.parametrize(
    ("verdict", "contacts", "outcomes", "more"),
    [
        ("scheduled", {"telegram": "1"}, {}, {"deliver_at": LATER, "far": True}),
        ("all_reached", {"telegram": "1"}, {"telegram": Sent("1")}, {}),
        ("partly", {"telegram": "1", "sms": "+79990000002"}, {"telegram": Sent("1")}, {}),
        ("in_progress", {"telegram": "1", "sms": "+79990000002"}, {"telegram": Rejected(Reason.BLOCKED)}, {}),
        (
            "some_reached",
            {"telegram": "1", "sms": "+79990000002"},
            {"telegram": Sent("1"), "sms": Rejected(Reason.BLOCKED)},
            {},
        ),
        ("nothing_worked", {"telegram": "1"}, {"telegram": Rejected(Reason.BLOCKED)}, {}),
        ("nobody_to_reach", {}, {}, {}),
    ],
)
async def test_the_history_has_one_verdict_for_each_situation(
    api: Api,
    courier: Couriers,
    verdict: str,
    contacts: dict[str, str],
    outcomes: dict[str, Outcome],
    more: dict[str, str],
) -> None:
    for channel, outcome in outcomes.items():
        await courier(channel, lambda message, outcome=outcome: outcome)
    people = [
        {"id": 1, "contacts": contacts},
        {"id": 2, "contacts": {name: "+79990000009" for name in contacts if name == "sms"}},
    ]
    made = await api.call("POST", "/v1/deliveries", delivery_body(recipients=people, channels=BOTH, **more))

    async def is_told() -> bool:
        return bool((await api.call("GET", made.headers["Location"])).json["verdict"] == verdict)

    await until(is_told)


async def test_a_history_key_can_be_reserved_before_the_delivery(api: Api) -> None:
    given = await api.call("POST", "/v1/history-keys", {"sender": {"id": "деканат: 1"}})
    assert given.status == 201
    assert given.json["history_key"].startswith("history:{0}:деканат: 1:")
    early = await api.call("GET", f"/v1/deliveries/{given.json['id']}")
    assert early.code == "HISTORY_NOT_FOUND"
    body = delivery_body(sender={"id": "деканат: 1"}, history_key=given.json["history_key"])
    made = await api.call("POST", "/v1/deliveries", body)
    assert (made.json["id"], made.json["history_key"]) == (given.json["id"], given.json["history_key"])
    assert (await api.call("GET", f"/v1/deliveries/{given.json['id']}")).json["sender"] == {"id": "деканат: 1"}


async def test_a_delivery_is_found_by_its_id_and_by_its_history_key(api: Api) -> None:
    made = await api.call("POST", "/v1/deliveries", delivery_body(sender={"id": "a.b:c"}))
    for name in (made.json["id"], made.json["history_key"]):
        assert (await api.call("GET", f"/v1/deliveries/{name}")).json["id"] == made.json["id"]


@pytest.mark.parametrize("sender", ["a/b", "50%25", "%2F", "a%2Fb", "~.:{}", "Ёж", "1.2.3", "a b+c", "%", "history:"])
async def test_an_id_can_be_put_into_a_url_unchanged(api: Api, sender: str) -> None:
    made = await api.call("POST", "/v1/deliveries", delivery_body(sender={"id": sender}))
    result = await api.call("GET", made.headers["Location"])
    assert (result.status, result.json["sender"]) == (200, {"id": sender})


async def test_a_recipient_named_twice_is_one_recipient_with_all_contacts(api: Api, courier: Couriers) -> None:
    telegram, sms = await courier("telegram"), await courier("sms")
    people = [
        {"id": 1, "contacts": {"sms": "+79990000001", "telegram": ["1", "1"]}},
        {"id": 1, "name": "Петя", "contacts": {"sms": ["+79990000001", "+79990000002"]}},
        {"id": "1", "contacts": {"telegram": "2", "sms": []}},
    ]
    made = await api.call("POST", "/v1/deliveries", delivery_body(recipients=people, channels=BOTH))
    assert made.json["recipients"] == 1
    result = await finished(api, made.headers["Location"])
    assert [(one["id"], one["name"]) for one in result["recipients"]] == [(1, "Петя")]
    assert (sorted(telegram.addresses), sorted(sms.addresses)) == (["1", "2"], ["+79990000001", "+79990000002"])


async def test_a_channel_named_twice_is_used_once(api: Api, courier: Couriers) -> None:
    """Regression: there were two parcels of one name; the delivery was sent once and never finished."""
    telegram = await courier("telegram")
    people = [{"id": 1, "contacts": {"telegram": "1"}}]
    made = await api.call("POST", "/v1/deliveries", delivery_body(recipients=people, channels=["telegram", "telegram"]))
    result = await finished(api, made.headers["Location"])
    assert (result["verdict"], telegram.addresses) == ("all_reached", ["1"])


async def test_a_scheduled_delivery_can_be_rescheduled_and_cancelled(api: Api) -> None:
    made = await api.call("POST", "/v1/deliveries", delivery_body(deliver_at="2029-11-21T17:00:00.250+03:00", far=True))
    assert (made.json["state"], made.json["deliver_at"]) == ("scheduled", "2029-11-21T14:00:00.250Z")
    where = made.headers["Location"]
    moved = await api.call("PATCH", where, {"deliver_at": LATER, "far": True})
    assert (moved.status, moved.json["deliver_at"]) == (200, "2029-12-31T21:00:00Z")
    assert (await api.call("DELETE", where)).json == {"cancelled": 1, "already_sent": [], "in_flight": []}
    assert (await api.call("GET", where)).json["state"] == "cancelled"
    assert (await api.call("PATCH", where, {"deliver_at": LATER, "far": True})).code == "CANCELLED"


async def test_times_are_cut_to_milliseconds(api: Api) -> None:
    made = await api.call(
        "POST", "/v1/deliveries", delivery_body(deliver_at="2029-12-31T23:59:59.999999999Z", far=True)
    )
    assert made.json["deliver_at"] == "2029-12-31T23:59:59.999Z"


async def test_a_time_that_has_just_passed_means_now_and_is_reported_as_moved(api: Api) -> None:
    passed = _in(minutes=-4)
    made = await api.call("POST", "/v1/deliveries", delivery_body(deliver_at=passed))
    assert (made.status, made.json["state"], made.json["moved_from"]) == (202, "released", passed)
    assert datetime.now(UTC) - datetime.fromisoformat(made.json["deliver_at"]) < timedelta(seconds=10)


@pytest.mark.parametrize(
    ("at", "far", "code"),
    [
        ({"minutes": -6}, False, "DELIVER_AT_PAST"),
        ({"days": -9000}, True, "DELIVER_AT_PAST"),
        ({"days": 367}, False, "DELIVER_AT_FAR"),
        ({"days": 365}, False, ""),
        ({"days": 367}, True, ""),
    ],
)
async def test_a_time_that_is_probably_a_mistake_is_refused_in_every_way_in(
    api: Api, at: dict[str, float], far: bool, code: str
) -> None:
    """Calls that send, preview, send many and move a delivery hold to one rule."""
    made = await api.call("POST", "/v1/deliveries", delivery_body(deliver_at=_in(hours=1)))
    when = {"deliver_at": _in(**at), **({"far": True} if far else {})}
    body, where = delivery_body(**when), made.headers["Location"]
    before = await api.keys()
    assert [line.get("code", "") for line in await bulk(api, ndjson(body))] == [code]
    calls = [("POST", "/v1/deliveries/preview", body), ("POST", "/v1/deliveries", body), ("PATCH", where, when)]
    for method, path, given in calls:
        answer = await api.call(method, path, given)
        assert (answer.status < 300, answer.code if code else "") == (not code, code), path
    assert not code or await api.keys() == before


async def test_a_released_delivery_cannot_be_rescheduled(api: Api) -> None:
    made = await api.call("POST", "/v1/deliveries", delivery_body())
    refused = await api.call("PATCH", made.headers["Location"], {"deliver_at": LATER, "far": True})
    assert (refused.status, refused.code) == (409, "ALREADY_RELEASED")


async def test_cancelling_chosen_recipients_reports_those_already_sent(api: Api, courier: Couriers) -> None:
    holding, held = asyncio.Event(), asyncio.Event()

    async def answer(message: Message) -> Outcome:
        if message.address == "2":
            held.set()
            await holding.wait()
        return Sent()

    await courier("telegram", answer)
    people = [{"id": n, "contacts": {"telegram": str(n)}} for n in (1, 2)]
    later = [{"id": 3, "contacts": {"sms": "+79990000003"}}, {"id": "four", "contacts": {"sms": "+79990000004"}}]
    made = await api.call("POST", "/v1/deliveries", delivery_body(recipients=people + later, channels=BOTH))
    where = made.headers["Location"]
    await held.wait()

    async def first_is_sent() -> bool:
        return bool((await api.call("GET", where)).json["counts"]["sent"])

    await until(first_is_sent)
    cancelled = await api.call("DELETE", f"{where}?recipient=1&recipient=four")
    holding.set()
    assert cancelled.status == 200
    assert (cancelled.json["cancelled"], cancelled.json["already_sent"]) == (1, [1])
    unknown = await api.call("DELETE", f"{where}?recipient=99")
    assert (unknown.status, unknown.code) == (404, "RECIPIENT_NOT_FOUND")


async def test_failed_outcomes_are_retried_in_the_same_history(api: Api, courier: Couriers) -> None:
    blocked = [True]
    await courier("telegram", lambda message: Rejected(Reason.BLOCKED) if blocked[0] else Sent("2"))
    made = await api.call("POST", "/v1/deliveries", delivery_body(channels=["telegram"]))
    where = made.headers["Location"]
    assert (await finished(api, where))["verdict"] == "nothing_worked"
    blocked[0] = False
    assert (await api.call("POST", f"{where}/retry", {"statuses": ["unknown"]})).json == {"queued": 0}
    again = await api.call("POST", f"{where}/retry", {"statuses": ["failed", "failed"]})
    assert (again.status, again.json) == (202, {"queued": 1})
    assert (await finished(api, where))["verdict"] == "all_reached"


async def test_deliveries_are_cancelled_by_a_common_field(api: Api) -> None:
    for tag in ("exam", "exam", "party"):
        await api.call("POST", "/v1/deliveries", delivery_body(tags=[tag], deliver_at=LATER, far=True))
    assert (await api.call("POST", "/v1/cancellations", {"tag": "exam"})).json == {"cancelled": 2}
    left = await api.call("GET", "/v1/deliveries?state=scheduled")
    assert [one["tags"] for one in left.json["deliveries"]] == [["party"]]


async def test_deliveries_are_listed_by_tag(api: Api) -> None:
    for tags in (["exam"], ["party", "exam"], ["party"], ["examination"], []):
        await api.call("POST", "/v1/deliveries", delivery_body(tags=tags, deliver_at=LATER, far=True))
    listed = await api.call("GET", "/v1/deliveries?tag=exam")
    assert [one["tags"] for one in listed.json["deliveries"]] == [["party", "exam"], ["exam"]]
    assert (await api.call("GET", "/v1/deliveries?tag=exam&sender=7")).json["deliveries"] == []
    page = await api.call("GET", "/v1/deliveries?tag=party&limit=1")
    assert [one["tags"] for one in page.json["deliveries"]] == [["party"]]
    following = page.headers["Link"].removesuffix('>; rel="next"').removeprefix("<")
    assert [one["tags"] for one in (await api.call("GET", following)).json["deliveries"]] == [["party", "exam"]]


async def test_deliveries_are_listed_newest_first_in_pages(api: Api) -> None:
    made = [
        (await api.call("POST", "/v1/deliveries", delivery_body(deliver_at=LATER, far=True))).json["id"]
        for _ in range(5)
    ]
    await api.call("POST", "/v1/deliveries", delivery_body(sender={"id": 7}))
    seen, where = [], "/v1/deliveries?sender=42&limit=2"
    while where:
        page = await api.call("GET", where)
        seen += [one["id"] for one in page.json["deliveries"]]
        assert all("recipients" not in one for one in page.json["deliveries"])
        assert ("Link" in page.headers) == (page.json["next"] is not None)
        where = page.headers.get("Link", "").removesuffix('>; rel="next"').removeprefix("<")
    assert seen == made[::-1]
    since = await api.call("GET", "/v1/deliveries", params={"since": "2040-01-01T00:00:00+03:00"})
    assert since.json == {"deliveries": [], "next": None} or since.code == "TIME_OUT_OF_RANGE"


async def test_a_long_history_is_read_in_pages(api: Api) -> None:
    people = [{"id": n, "contacts": {}} for n in range(250)]
    made = await api.call("POST", "/v1/deliveries", delivery_body(recipients=people))
    first = await api.call("GET", made.headers["Location"])
    assert len(first.json["recipients"]) == 100
    seen, where = [], made.headers["Location"] + "?limit=120"
    while where:
        page = await api.call("GET", where)
        seen += [one["id"] for one in page.json["recipients"]]
        where = page.headers.get("Link", "").removesuffix('>; rel="next"').removeprefix("<")
    assert seen == list(range(250))


async def test_one_request_takes_ten_thousand_recipients(api: Api) -> None:
    people = [{"id": n, "contacts": {"sms": f"+7999{n:07}"}} for n in range(10_000)]
    made = await api.call("POST", "/v1/deliveries", delivery_body(recipients=people, deliver_at=LATER, far=True))
    assert (made.status, made.json["recipients"]) == (202, 10_000)
    history = await api.call("GET", made.headers["Location"] + "?limit=10000")
    assert len(history.json["recipients"]) == 10_000


async def test_a_cancelled_delivery_cannot_be_moved(api: Api) -> None:
    made = await api.call("POST", "/v1/deliveries", delivery_body(deliver_at="2030-01-01T00:00:00Z", far=True))
    await api.call("DELETE", made.headers["Location"])
    refused = await api.call("PATCH", made.headers["Location"], {"deliver_at": "2030-01-02T00:00:00Z", "far": True})
    assert (refused.status, refused.code) == (409, "CANCELLED")


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("2028-12-31T23:59:60Z", "2029-01-01T00:00:00Z"),
        ("2029-01-01T02:59:60.5+03:00", "2029-01-01T00:00:00.500Z"),
        ("2028-12-31T23:59:59.123456789012345Z", "2028-12-31T23:59:59.123Z"),
    ],
)
async def test_leap_seconds_and_long_fractions_are_accepted(api: Api, given: str, read: str) -> None:
    made = await api.call("POST", "/v1/deliveries", delivery_body(deliver_at=given, far=True))
    assert (made.status, made.json["deliver_at"]) == (202, read)
