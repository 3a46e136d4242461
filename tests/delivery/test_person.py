"""One person over HTTP: found by name, what was sent to it, merged with another, blocked, deleted with its data."""

from typing import Any

import pytest

from core.model.people import Group, User
from tests.delivery.conftest import Api, Couriers, delivery_body
from tests.delivery.test_authentication import a_key
from tests.delivery.test_deliveries import finished
from tests.delivery.test_people_signed_in import as_person
from tests.support.servers import several_shards

__all__ = ["several_shards"]

LATER = "2030-01-01T12:00:00Z"


@pytest.fixture
async def school(api: Api) -> Api:
    """Anna twice (1 and "old"), and others; Anna 1 is in group A, the old one in A and B, and owns B."""
    directory = api.services.core.directory
    for user in (
        User(1, "Анна Ёлкина", contacts={"sms": ["+79990000001"]}, role="trainer"),
        User("old", "Анна Е.", "anna@example.org", contacts={"telegram": ["100001"]}, opt_out=["vk"], role="staff"),
        User(3, "Анна Аннова"),
        User(4, "ivan ELKIN-Smith"),
        User(5),
    ):
        await directory.users.create("default", user)
    await directory.groups.create("default", Group("A"), [1, "old"])
    await directory.groups.create("default", Group("B", "Second"), ["old"])
    await directory.ownerships.own("default", "old", "group", "B")
    return api


async def found(api: Api, name: str, **more: Any) -> list[Any]:
    response = await api.call("GET", "/v1/users", params={"name": name, **more})
    assert response.status == 200, response.body
    return [user["id"] for user in response.json["users"]]


async def test_people_are_found_by_the_beginnings_of_their_names_in_both_scripts_and_any_case(school: Api) -> None:
    cases = {
        "анна": [1, 3, "old"],
        "АН": [1, 3, "old"],
        "елк": [1],
        "ЁЛК ан": [1],
        "elk": [4],
        "smi IV": [4],
        "елкина п": [],
    }
    for name, people in cases.items():
        assert await found(school, name) == people, name
    assert await found(school, "анна", role="trainer") == [1]
    assert await found(school, "анна", group="B") == ["old"]
    first = await school.call("GET", "/v1/users", params={"name": "анна", "limit": 1})
    assert await found(school, "анна", cursor=first.json["next"]) == [3, "old"]
    await school.call("PATCH", "/v1/users/1", {"name": "Вера"})
    assert (await found(school, "анна"), await found(school, "вера")) == ([3, "old"], [1])
    await school.call("DELETE", "/v1/users/1")
    assert await found(school, "вера") == []


async def test_two_people_become_one_as_it_was_shown_before(school: Api) -> None:
    shown = await school.call("POST", "/v1/users/1:merge?dry_run", {"other": "old"})
    assert (await school.call("GET", "/v1/users/old")).status == 200, "nothing was written"
    done = await school.call("POST", "/v1/users/1:merge", {"other": "old"})
    assert done.json == shown.json
    assert done.json["user"] == {
        "id": 1,
        "name": "Анна Ёлкина",
        "email": "anna@example.org",
        "role": "trainer",
        "locale": None,
        "contacts": {"sms": ["+79990000001"], "telegram": ["100001"]},
        "opt_out": ["vk"],
        "blocked": False,
    }
    assert (done.json["groups"], done.json["lost"]) == (["B"], {"name": "Анна Е.", "role": "staff"})
    assert (await school.call("GET", "/v1/users/old")).code == "USER_NOT_FOUND"
    groups = (await school.call("GET", "/v1/users/1/groups")).json["groups"]
    assert [(group["id"], group["size"]) for group in groups] == [("A", 1), ("B", 1)]
    assert (await school.call("GET", "/v1/ownerships?user=1")).json["ownerships"][0]["id"] == "B"
    assert await found(school, "анна") == [1, 3]
    assert (await school.call("POST", "/v1/users/1:merge", {"other": "1"})).code == "SAME_PERSON"


async def test_who_is_blocked_gets_nothing_cannot_send_and_is_signed_out(school: Api, courier: Couriers) -> None:
    browser = await as_person(school, 1)
    await courier("sms")
    await school.call("PATCH", "/v1/users/1", {"blocked": True})
    assert (await browser.call("GET", "/v1/me")).status == 401
    body = {"sender": {"id": 42}, "text": "x", "recipients": [{"id": 1}], "channels": ["sms"]}
    sent = await school.call("POST", "/v1/deliveries", body)
    history = await finished(school, f"/v1/deliveries/{sent.json['id']}")
    assert history["recipients"][0]["outcomes"]["sms"]["reason"] == "person_blocked"
    program = await a_key(school, "send")
    refused = await program.call("POST", "/v1/deliveries", delivery_body(sender={"id": 1}))
    assert (refused.status, refused.code) == (403, "SENDER_BLOCKED")
    await school.call("PATCH", "/v1/users/1", {"blocked": False})
    assert (
        await program.call("POST", "/v1/deliveries", delivery_body(sender={"id": 1}, deliver_at=LATER, far=True))
    ).status == 202


async def test_what_was_sent_to_a_person_is_listed_and_a_deletion_leaves_only_the_figures(
    school: Api, courier: Couriers
) -> None:
    await courier("sms")
    ids = []
    body = {"sender": {"id": 9}, "recipients": [{"group": "A"}, "3=sms:+79990000003"], "channels": ["sms"], "text": "x"}
    for _ in range(3):
        ids.append((await school.call("POST", "/v1/deliveries", body)).json["id"])
        await finished(school, f"/v1/deliveries/{ids[-1]}")
    await school.call(
        "POST", "/v1/deliveries", delivery_body(recipients=["11=sms:+79990000011"], deliver_at=LATER, far=True)
    )
    waiting = await school.call(
        "POST", "/v1/deliveries", {**body, "deliver_at": LATER, "far": True, "sender": {"id": 1, "name": "Анна"}}
    )
    first = (await school.call("GET", "/v1/users/1/deliveries", params={"limit": 2})).json
    rest = (await school.call("GET", "/v1/users/1/deliveries", params={"cursor": first["next"]})).json
    assert [one["id"] for one in (*first["deliveries"], *rest["deliveries"])] == [waiting.json["id"], *reversed(ids)]
    assert (rest["next"], rest["deliveries"][0]["outcomes"]["sms"]["status"]) == (None, "sent")

    assert (await school.call("DELETE", "/v1/users/1")).status == 204
    stored = "".join([text async for text in _stored(school)])
    assert "+79990000001" not in stored
    assert "Ёлкина" not in stored
    assert "+79990000003" in stored
    history = (await school.call("GET", f"/v1/deliveries/{ids[0]}")).json
    assert history["counts"]["reached"] == 2
    assert {one["id"]: (one["name"], one["received_in"]) for one in history["recipients"]}[1] == (None, ["sms"])
    cancelled = (await school.call("GET", f"/v1/deliveries/{waiting.json['id']}")).json
    assert {one["id"]: one["outcomes"]["sms"]["status"] for one in cancelled["recipients"]}[1] == "cancelled"
    assert cancelled["sender"]["name"] is None


async def _stored(api: Api) -> Any:
    """All texts of the histories."""
    async for key in api.store.redis.scan_iter("history:*"):
        if await api.store.redis.type(key) == "hash":
            yield str(await api.store.redis.hgetall(key))
