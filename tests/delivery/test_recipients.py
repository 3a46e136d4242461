"""The recipients of a delivery: not reached first, filtered, in pages; why, and chosen ones again."""

from typing import Any

import pytest
from redis.asyncio import Redis

from core.model.states import Reason
from couriers.provider_calls import noted_call
from couriers.sending.interface import Message, Outcome, Rejected, Sent
from tests.delivery.conftest import Api, Couriers, delivery_body
from tests.delivery.test_deliveries import finished
from tests.support.waiting import until

REFUSED = {"100002": Reason.BLOCKED, "100004": Reason.RECIPIENT_UNREACHABLE}


def answer(message: Message) -> Outcome:
    reason = REFUSED.get(message.address)
    return Rejected(reason) if reason else Sent("1")


def people(count: int) -> list[dict[str, Any]]:
    """Person n has the address 100000 + n; the last one has no contact."""
    found = [{"id": n, "name": f"Человек {n}", "contacts": {"telegram": str(100000 + n)}} for n in range(1, count)]
    return [*found, {"id": count, "name": "Без связи", "contacts": {}}]


@pytest.fixture
async def where(api: Api, courier: Couriers) -> str:
    """The address of a delivery to six people: two were refused and one has no contact."""
    await courier("telegram", answer)
    made = await api.call("POST", "/v1/deliveries", delivery_body(recipients=people(6), channels=["telegram"]))
    await finished(api, made.headers["Location"])
    return str(made.headers["Location"])


async def ids(api: Api, where: str, query: str = "") -> list[int]:
    return [one["id"] for one in (await api.call("GET", f"{where}/recipients{query}")).json["recipients"]]


async def test_those_not_reached_come_first_with_why(api: Api, where: str) -> None:
    page = (await api.call("GET", f"{where}/recipients")).json
    why = [(one["id"], one["why"]) for one in page["recipients"]]
    assert why[:3] == [(2, "blocked"), (4, "recipient_unreachable"), (6, "no_contact")]
    assert why[3:] == [(1, None), (3, None), (5, None)]
    reasons = (await api.call("GET", f"{where}/reasons")).json
    assert reasons == {"not_reached": 3, "reasons": {"blocked": 1, "recipient_unreachable": 1, "no_contact": 1}}


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?status=sent", [1, 3, 5]),
        ("?reason=blocked", [2]),
        ("?why=no_contact", [6]),
        ("?q=БЕЗ", [6]),
        ("?q=4", [4]),
        ("?reached=no", [2, 4, 6]),
        ("?reached=yes&q=5", [5]),
        ("?channel=sms", []),
        ("?channel=telegram&status=failed", [2, 4]),
    ],
)
async def test_recipients_are_filtered_also_in_the_csv(api: Api, where: str, query: str, found: list[int]) -> None:
    assert await ids(api, where, query) == found
    lines = (await api.call("GET", f"{where}/recipients.csv{query}")).body.decode().splitlines()[1:]
    assert [int(line.split(",")[0]) for line in lines] == found


async def test_pages_neither_skip_nor_repeat(api: Api, where: str) -> None:
    found: list[int] = []
    cursor = ""
    while True:
        page = (await api.call("GET", f"{where}/recipients?limit=2{cursor}")).json
        found += [one["id"] for one in page["recipients"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert found == [2, 4, 6, 1, 3, 5]
    assert (await api.call("GET", f"{where}/recipients?cursor=x1")).json["errors"][0]["code"] == "CURSOR_MALFORMED"


async def test_only_chosen_people_are_tried_again(api: Api, courier: Couriers) -> None:
    sender = await courier("telegram", answer)
    body = delivery_body(recipients=people(6), channels=["telegram"])
    where = (await api.call("POST", "/v1/deliveries", body)).headers["Location"]
    await finished(api, where)
    again = await api.call("POST", f"{where}/retry", {"recipients": [4, "6"]})
    assert again.json == {"queued": 1}
    await until(lambda: len(sender.addresses) == 6)
    assert sender.addresses[5:] == ["100004"]


async def test_a_page_of_many_recipients_reads_only_that_page(api: Api, client: Redis) -> None:
    async def read_bytes() -> int:
        """What the server has written so far, to all clients."""
        return int((await client.info("stats"))["total_net_output_bytes"])

    body = delivery_body(recipients=people(9000), channels=["telegram"], deliver_at="2030-01-01T00:00:00Z", far=True)
    where = (await api.call("POST", "/v1/deliveries", body)).headers["Location"]
    begun = await read_bytes()
    assert (await ids(api, where, "?cursor=n8000&limit=100"))[:2] == [8001, 8002]
    of_page = await read_bytes() - begun
    await ids(api, where, "?cursor=n8000&limit=1000")
    assert of_page < (await read_bytes() - begun - of_page) / 2
    assert await ids(api, where, "?q=8999&cursor=n5000") == [8999]


async def test_deliveries_are_filtered_by_text_verdict_sender_and_time(api: Api, where: str) -> None:
    later = {"deliver_at": "2030-01-01T00:00:00Z", "far": True}
    other = (await api.call("POST", "/v1/deliveries", delivery_body(text="Экзамен", sender={"id": 7}, **later))).json

    async def listed(query: str) -> list[str]:
        return [one["id"] for one in (await api.call("GET", f"/v1/deliveries?{query}")).json["deliveries"]]

    first = where.rpartition("/")[2]
    assert await listed("text=экзам") == [other["id"]]
    assert await listed("sender=7") == [other["id"]]
    assert await listed("verdict=some_reached") == [first]
    assert await listed("until=2020-01-01T00:00:00Z") == []
    assert await listed("until=2028-01-01T00:00:00Z") == [other["id"], first]


async def test_a_delivery_is_found_by_a_message_that_it_has_sent(api: Api, where: str) -> None:
    async def found(message: str) -> list[str]:
        listed = await api.call("GET", f"/v1/deliveries?message={message}")
        return [f"/v1/deliveries/{one['id']}" for one in listed.json["deliveries"]]

    assert await found("telegram:100001:1") == [where]
    for other in ("telegram:100001:2", "telegram:100002:1", "telegram:100007:1", "sms:100001:1"):
        assert await found(other) == []
    assert (await api.call("GET", "/v1/deliveries?message=telegram")).status == 400


async def test_what_the_provider_said_stands_in_the_outcome_and_the_csv_and_its_calls_for_who_may_inspect(
    api: Api, courier: Couriers
) -> None:
    def refuse(message: Message) -> Outcome:
        with noted_call("sendMessage") as call:
            call.answered(403, "Forbidden: bot was blocked by the user")
        return Rejected(Reason.BLOCKED)

    await courier("telegram", refuse)
    body = delivery_body(recipients=people(3), channels=["telegram"])
    made = await api.call("POST", "/v1/deliveries", body)
    where = made.headers["Location"]
    await finished(api, where)
    words = "403 Forbidden: bot was blocked by the user"
    page = (await api.call("GET", f"{where}/recipients")).json
    assert [one["outcomes"]["telegram"].get("detail") for one in page["recipients"]] == [words, words, None]
    assert (await api.call("GET", f"{where}/recipients.csv")).body.decode().count(words) == 2
    assert f"({words})" in (await api.call("GET", f"{where}/recipients.csv?language=en")).body.decode()
    ((one,),) = (await api.call("GET", f"{where}/exchanges?recipient=1")).json.values()
    assert (one["channel"], one["outcome"], one["reason"], one["detail"]) == ("telegram", "rejected", "blocked", words)
    ((call),) = one["calls"]
    assert (call["method"], call["status"], call["words"]) == ("sendMessage", 403, words.removeprefix("403 "))
    assert (await api.call("GET", f"{where}/exchanges?recipient=99")).json == {"exchanges": []}
    for scopes, status in [(["read"], 403), (["inspect"], 200), (["admin"], 200)]:
        key = (await api.call("POST", "/v1/api-keys", {"name": "k", "scopes": scopes})).json["secret"]
        assert (await api.as_key(key).call("GET", f"{where}/exchanges?recipient=1")).status == status
