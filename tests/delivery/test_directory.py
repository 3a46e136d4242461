"""The directory over HTTP: statuses, codes, pages, and that tenants are apart."""

import asyncio
import re
from collections import Counter
from typing import Any
from urllib.parse import quote

import pytest
from yarl import URL

from tests.delivery.conftest import Api, ApiResponse, Couriers, delivery_body, read
from tests.support.servers import several_shards

__all__ = ["several_shards"]

ANNA = {
    "id": 1,
    "name": "Анна Петрова",
    "email": "anna@example.org",
    "role": "trainer",
    "locale": "en",
    "contacts": {"telegram": ["100001"], "sms": ["+79991112233"]},
    "opt_out": ["vk"],
    "blocked": False,
}
PLAIN: dict[str, Any] = {
    "name": None,
    "email": None,
    "role": None,
    "locale": None,
    "contacts": {},
    "opt_out": [],
    "blocked": False,
}


async def add_people(api: Api, *ids: int | str) -> None:
    for one in ids:
        assert (await api.call("POST", "/v1/users", {"id": one})).status == 201


async def refusal(api: Api, method: str, path: str, body: object = None) -> tuple[int, str, list[str]]:
    """Status, code and the paths of the errors of a refused call."""
    response = await api.call(method, path, body)
    return response.status, response.code, [one["path"] for one in response.json.get("errors", [])]


async def pages(api: Api, path: str, name: str) -> list[Any]:
    """The ids of all pages, by their Link headers. Asserts that every page but the last is full."""
    limit = int(path.partition("limit=")[2])
    found: list[Any] = []
    while path:
        response = await api.call("GET", path)
        found += [one["id"] for one in response.json[name]]
        assert len(response.json[name]) == limit or not response.json["next"]
        assert len(response.json[name]) <= limit
        link = response.headers.get("Link", "")
        assert (response.json["next"] is None) == (link == "")
        path = link.partition(">")[0].removeprefix("<")
    return found


async def test_a_person_is_added_shown_changed_and_deleted(api: Api) -> None:
    made = await api.call("POST", "/v1/users", {**ANNA, "contacts": {"telegram": "100001", "sms": "8 999 111 22 33"}})
    assert (made.status, made.json, made.headers["Location"]) == (201, ANNA, "/v1/users/1")
    assert (await api.call("GET", "/v1/users/1")).json == ANNA
    changed = await api.call("PATCH", "/v1/users/1", {"name": None, "contacts": {"vk": "7"}})
    assert (changed.status, changed.json) == (200, {**ANNA, "name": None, "contacts": {"vk": ["7"]}})
    deleted = await api.call("DELETE", "/v1/users/1")
    assert (deleted.status, deleted.body) == (204, b"")
    for method, body in (("GET", None), ("PATCH", {}), ("DELETE", None)):
        assert (await refusal(api, method, "/v1/users/1", body))[:2] == (404, "USER_NOT_FOUND")


async def test_the_language_of_a_person_is_what_somebody_has_stated_and_russian_is_a_statement(api: Api) -> None:
    """A person without one was stored as Russian: nobody could tell the two apart."""
    for body, stated in (({}, None), ({"locale": "ru"}, "ru"), ({"locale": None}, None), ({"locale": "en"}, "en")):
        call = ("PATCH", "/v1/users/1") if stated or body else ("POST", "/v1/users")
        assert (await api.call(*call, body or {"id": 1})).json["locale"] == stated
        assert (await api.call("GET", "/v1/users/1")).json["locale"] == stated
        rows = (await api.call("GET", "/v1/export/users")).body.decode("utf-8-sig").splitlines()
        assert rows[1].split(",")[4] == (stated or "")


@pytest.mark.parametrize("given", [7, "7", "a/b?c#d%e", "Ё ж", "..", "0x7"])
async def test_an_id_comes_back_as_it_was_given_and_its_location_leads_to_it(api: Api, given: int | str) -> None:
    made = await api.call("POST", "/v1/users", {"id": given})
    assert made.json == {"id": given, **PLAIN}
    if given != "..":  # every client resolves it
        assert (await call_raw(api, made.headers["Location"])).json == made.json
    assert (await api.call("GET", "/v1/users")).json["users"] == [made.json]


async def test_a_person_without_an_id_gets_one(api: Api) -> None:
    made = [await api.call("POST", "/v1/users", {"name": "Anna"}) for _ in range(2)]
    ids = {str(one.json["id"]) for one in made}
    assert len(ids) == 2
    assert all(re.fullmatch("p-[0-9a-f]{12}", one) for one in ids)
    assert (await api.call("GET", made[0].headers["Location"])).json == made[0].json


async def call_raw(api: Api, path: str) -> ApiResponse:
    headers = {"Authorization": f"Bearer {api.secret}"}
    async with api.session.get(URL(api.url + path, encoded=True), headers=headers) as response:
        return await read(response)


async def test_every_error_of_a_person_is_reported_with_its_path(api: Api) -> None:
    body = {
        "id": 1,
        "name": "b\n",
        "email": "a@b.org\r\nBcc: c@d.org",
        "contacts": {"pigeon": ["1"], "telegram": ["1"]},
        "opt_out": ["vk", "smoke"],
    }
    response = await api.call("POST", "/v1/users", body)
    found = {one["path"]: one["code"] for one in response.json["errors"]}
    assert (response.status, found) == (
        400,
        {
            "name": "NOT_PRINTABLE",
            "email": "EMAIL_MALFORMED",
            "contacts.pigeon": "UNKNOWN_CHANNEL",
            "opt_out.1": "UNKNOWN_CHANNEL",
        },
    )
    for more, path in (({"id": "a\u0007"}, "id"), ({"contacts": {"telegram": ["1\u00072"]}}, "contacts.telegram.0")):
        malformed = await refusal(api, "POST", "/v1/users", {"id": 1, **more})
        assert malformed == (400, "NOT_PRINTABLE", [path])
    assert (await api.call("GET", "/v1/users")).json == {"users": [], "next": None}


@pytest.mark.parametrize(
    ("body", "code", "path"),
    [
        ({}, "USER_UNNAMED", "id"),
        ({"id": 1, "role": "dean"}, "WRONG_VALUE", "role"),
        ({"id": 1, "locale": "de"}, "WRONG_VALUE", "locale"),
        ({"id": 1, "locale": 7}, "WRONG_TYPE", "locale"),
        ({"id": 1, "phone": "1"}, "UNKNOWN_FIELD", "phone"),
        ({"id": True}, "WRONG_TYPE", "id"),
        ({"id": 2**63}, "OUT_OF_RANGE", "id"),
        ({"id": 1, "contacts": {"sms": ["1"] * 17}}, "TOO_LONG", "contacts.sms"),
    ],
)
async def test_a_malformed_person_is_refused(api: Api, body: object, code: str, path: str) -> None:
    assert await refusal(api, "POST", "/v1/users", body) == (400, code, [path])


async def test_what_another_person_has_is_refused(api: Api) -> None:
    await api.call("POST", "/v1/users", ANNA)
    await add_people(api, 2)
    calls = [
        ("POST", "/v1/users", {"id": "1"}, "USER_EXISTS", "id"),
        ("POST", "/v1/users", {"id": 3, "email": "ANNA@example.org"}, "EMAIL_TAKEN", "email"),
        ("PATCH", "/v1/users/2", {"email": "anna@example.org"}, "EMAIL_TAKEN", "email"),
        ("POST", "/v1/users", {"id": 3, "contacts": {"sms": "89991112233"}}, "CONTACT_TAKEN", "contacts.sms"),
        ("PATCH", "/v1/users/2", {"contacts": {"telegram": "100001"}}, "CONTACT_TAKEN", "contacts.telegram"),
        ("POST", "/v1/contacts", {"user": 2, "channel": "sms", "address": "89991112233"}, "CONTACT_TAKEN",
         "contacts.sms"),
    ]  # fmt: skip
    for method, path, body, code, field in calls:
        assert await refusal(api, method, path, body) == (409, code, [field])
    assert (await api.call("GET", "/v1/users/2")).json == {"id": 2, **PLAIN}


async def test_of_fifty_concurrent_requests_with_one_contact_one_wins(api: Api) -> None:
    bodies = [{"id": n, "contacts": {"sms": "+79991112233"}} for n in range(50)]
    responses = await asyncio.gather(*(api.call("POST", "/v1/users", body) for body in bodies))
    assert Counter(one.status for one in responses) == {201: 1, 409: 49}
    assert len((await api.call("GET", "/v1/users")).json["users"]) == 1


async def test_contacts_are_added_listed_and_removed_one_by_one(api: Api) -> None:
    await add_people(api, 1)
    for address, status in (("+7 (999) 111-22-33", 201), ("89991112233", 201)):
        added = await api.call("POST", "/v1/contacts", {"user": 1, "channel": "sms", "address": address})
        assert (added.status, added.json) == (status, {"user": 1, "channel": "sms", "address": "+79991112233"})
    await api.call("POST", "/v1/contacts", {"user": "1", "channel": "vk", "address": "7"})
    removed = await api.call("DELETE", "/v1/contacts/1/sms/89991112233")
    assert removed.status == 204
    left = (await api.call("GET", "/v1/contacts?user=1")).json
    assert left == {"contacts": [{"user": 1, "channel": "vk", "address": "7"}]}
    assert await refusal(api, "DELETE", "/v1/contacts/1/sms/89991112233") == (404, "CONTACT_NOT_FOUND", [])
    assert await refusal(api, "DELETE", "/v1/contacts/9/sms/1") == (404, "USER_NOT_FOUND", [])
    body = {"user": 1, "channel": "pigeon", "address": "1"}
    assert (await refusal(api, "POST", "/v1/contacts", body))[:2] == (400, "UNKNOWN_CHANNEL")
    assert await refusal(api, "POST", "/v1/contacts", {**body, "user": 9, "channel": "vk"}) == (
        404, "USER_NOT_FOUND", [])  # fmt: skip


async def test_people_are_found_by_email_contact_group_and_role(api: Api) -> None:
    await api.call("POST", "/v1/users", ANNA)
    await api.call("POST", "/v1/users", {"id": 2, "role": "trainer"})
    await api.call("POST", "/v1/groups", {"id": "A", "members": [1, 2]})

    async def found(query: str) -> list[Any]:
        return [one["id"] for one in (await api.call("GET", f"/v1/users?{query}")).json["users"]]

    assert await found("email=ANNA@example.org") == [1]
    assert await found("contact=telegram:100001") == [1]
    assert await found("contact=sms:%2B79991112233") == [1]
    assert await found("group=A&role=trainer") == [1, 2]
    assert await found("role=student") == []
    assert await found("group=A&contact=vk:1") == []
    assert await refusal(api, "GET", "/v1/users?contact=100001") == (400, "CONTACT_MALFORMED", ["contact"])
    assert await refusal(api, "GET", "/v1/users?role=dean") == (400, "WRONG_VALUE", ["role"])
    assert await refusal(api, "GET", "/v1/users?cursor=*") == (400, "CURSOR_MALFORMED", ["cursor"])


async def test_lists_are_paged_with_link_headers(api: Api) -> None:
    await add_people(api, *range(7))
    for n in range(7):
        await api.call("POST", "/v1/groups", {"id": f"g{n}", "members": list(range(7))})
        await api.call("POST", "/v1/supergroups", {"id": f"s{n}", "groups": ["g0"]})
    assert await pages(api, "/v1/users?limit=3", "users") == list(range(7))
    assert await pages(api, "/v1/groups/g0/members?limit=2", "users") == list(range(7))
    assert await pages(api, "/v1/users?group=g1&limit=2", "users") == list(range(7))
    assert await pages(api, "/v1/groups?limit=1", "groups") == [f"g{n}" for n in range(7)]
    for limit in (2, 7):
        assert await pages(api, f"/v1/supergroups?limit={limit}", "supergroups") == [f"s{n}" for n in range(7)]


async def test_a_group_is_added_changed_filled_and_deleted(api: Api) -> None:
    await add_people(api, 1, "a")
    made = await api.call("POST", "/v1/groups", {"id": "ИВТ-21", "title": "Первый", "virtual": True, "members": [1]})
    body = {"id": "ИВТ-21", "title": "Первый", "virtual": True, "size": 1}
    assert (made.status, made.json) == (201, body)
    where = made.headers["Location"]
    assert (await api.call("GET", "/v1/groups/ИВТ-21")).json == body
    changed = await call_patch(api, "/v1/groups/ИВТ-21", {"virtual": False})
    assert changed.json == {**body, "virtual": False}
    for _ in range(2):
        assert (await api.call("PUT", "/v1/groups/ИВТ-21/members/a")).status == 204
    assert [one["id"] for one in (await api.call("GET", "/v1/groups/ИВТ-21/members")).json["users"]] == [1, "a"]
    for _ in range(2):
        assert (await api.call("DELETE", "/v1/groups/ИВТ-21/members/1")).status == 204
    assert [one["id"] for one in (await api.call("GET", "/v1/groups/ИВТ-21/members")).json["users"]] == ["a"]
    assert where.startswith("/v1/groups/%D0%98")
    assert (await api.call("DELETE", "/v1/groups/ИВТ-21")).status == 204
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/members"), ("PUT", "/members/1")):
        assert await refusal(api, method, f"/v1/groups/ИВТ-21{path}") == (404, "GROUP_NOT_FOUND", [])


async def call_patch(api: Api, path: str, body: object) -> ApiResponse:
    response = await api.call("PATCH", path, body)
    assert response.status == 200
    return response


async def test_malformed_groups_are_refused(api: Api) -> None:
    calls: list[tuple[object, tuple[int, str, list[str]]]] = [
        ({"id": "a\n"}, (400, "NOT_PRINTABLE", ["id"])),
        ({"id": 1, "title": "a\n"}, (400, "NOT_PRINTABLE", ["title"])),
        ({"id": 1, "virtual": 1}, (400, "WRONG_TYPE", ["virtual"])),
        ({"id": 1, "members": ["a\n"]}, (400, "NOT_PRINTABLE", ["members.0"])),
        ({"id": 1, "members": [5]}, (404, "USER_NOT_FOUND", [])),
        ({"id": 1, "members": list(range(501))}, (400, "TOO_LONG", ["members"])),
    ]
    for body, refused in calls:
        assert await refusal(api, "POST", "/v1/groups", body) == refused
    assert (await api.call("GET", "/v1/groups")).json == {"groups": [], "next": None}


async def test_supergroups_and_ownerships_keep_the_rule(api: Api) -> None:
    await add_people(api, 1)
    for name in "ABC":
        await api.call("POST", "/v1/groups", {"id": name})
    made = await api.call("POST", "/v1/supergroups", {"id": "1 курс", "title": "Все", "groups": ["A", "B"]})
    body = {"id": "1 курс", "title": "Все", "groups": ["A", "B"], "size": 2}
    assert (made.status, made.json) == (201, body)
    own = "/v1/ownerships/1"
    assert (await api.call("PUT", f"{own}/group/A")).status == 204
    assert await refusal(api, "PUT", f"{own}/supergroup/1 курс") == (409, "GROUP_NOT_OWNED", [])
    assert (await api.call("PUT", f"{own}/group/B")).status == 204
    assert (await api.call("PUT", f"{own}/supergroup/1 курс")).status == 204
    assert await refusal(api, "PUT", "/v1/supergroups/1 курс/groups/C") == (409, "GROUP_NOT_OWNED", [])
    listed = (await api.call("GET", "/v1/ownerships?user=1")).json["ownerships"]
    assert [(one["user"], one["kind"], one["id"]) for one in listed] == [
        (1, "group", "A"), (1, "group", "B"), (1, "supergroup", "1 курс")]  # fmt: skip
    assert (await api.call("DELETE", f"{own}/group/B")).status == 204
    listed = (await api.call("GET", "/v1/ownerships?user=1")).json["ownerships"]
    assert [one["id"] for one in listed] == ["A"]
    assert (await api.call("PUT", "/v1/supergroups/1 курс/groups/C")).status == 204
    assert (await api.call("DELETE", "/v1/supergroups/1 курс/groups/A")).status == 204
    renamed = await call_patch(api, "/v1/supergroups/1 курс", {"title": None})
    assert renamed.json == {"id": "1 курс", "title": None, "groups": ["B", "C"], "size": 2}
    assert (await api.call("DELETE", "/v1/supergroups/1 курс")).status == 204
    assert await refusal(api, "GET", "/v1/supergroups/1 курс") == (404, "SUPERGROUP_NOT_FOUND", [])


async def test_unknown_parts_of_ownerships_are_refused(api: Api) -> None:
    await add_people(api, 1)
    calls = [
        ("PUT", "/v1/ownerships/1/group/A", (404, "GROUP_NOT_FOUND", [])),
        ("PUT", "/v1/ownerships/1/supergroup/A", (404, "SUPERGROUP_NOT_FOUND", [])),
        ("PUT", "/v1/ownerships/9/group/A", (404, "USER_NOT_FOUND", [])),
        ("DELETE", "/v1/ownerships/9/group/A", (404, "USER_NOT_FOUND", [])),
        ("PUT", "/v1/ownerships/1/faculty/A", (400, "WRONG_VALUE", ["kind"])),
        ("GET", "/v1/ownerships?user=9", (404, "USER_NOT_FOUND", [])),
        ("GET", "/v1/ownerships", (400, "REQUIRED", ["user"])),
    ]
    for method, path, refused in calls:
        assert await refusal(api, method, path) == refused


async def test_tenants_see_nothing_of_each_others_directory(api: Api) -> None:
    """Both tenants have the same ids, addresses and names."""
    _, secret = await api.services.api_keys.create("other", ["manage"], "other")
    theirs = api.as_key(secret)
    for client in (api, theirs):
        assert (await client.call("POST", "/v1/users", ANNA)).status == 201
        assert (await client.call("POST", "/v1/groups", {"id": "A", "members": [1]})).status == 201
        assert (await client.call("POST", "/v1/supergroups", {"id": "S", "groups": ["A"]})).status == 201
    await api.call("POST", "/v1/users", {"id": 2})
    await api.call("PUT", "/v1/groups/A/members/2")
    for path in ("/v1/groups/A", "/v1/users/1", "/v1/supergroups/S"):
        assert (await api.call("DELETE", path)).status == 204
        assert (await api.call("GET", path)).status == 404
    assert (await theirs.call("GET", "/v1/users")).json["users"] == [ANNA]
    assert [one["id"] for one in (await theirs.call("GET", "/v1/groups/A/members")).json["users"]] == [1]
    assert (await theirs.call("GET", "/v1/supergroups/S")).json["groups"] == ["A"]
    assert (await theirs.call("GET", "/v1/users?contact=telegram:100001")).json["users"] == [ANNA]
    assert (await theirs.call("GET", "/v1/users/2")).status == 404


async def test_the_history_of_a_deleted_person_keeps_its_figures_only(api: Api, courier: Couriers) -> None:
    await courier("telegram")
    await api.call("POST", "/v1/users", ANNA)
    await api.call("POST", "/v1/groups", {"id": "A", "members": [1]})
    body = {"sender": {"id": 42}, "text": "Hello", "recipients": [{"group": "A"}], "channels": ["telegram"]}
    made = await api.call("POST", "/v1/deliveries", body)
    await api.call("POST", "/v1/track", {"history_key": made.json["id"]})
    before = await api.call("GET", made.headers["Location"])
    for path in ("/v1/users/1", "/v1/groups/A"):
        assert (await api.call("DELETE", path)).status == 204
    after = await api.call("GET", made.headers["Location"])
    (recipient,) = after.json["recipients"]
    assert (recipient["id"], recipient["name"], recipient["origin"]) == (1, None, [])
    assert recipient["outcomes"]["telegram"]["status"] == "sent"
    assert (after.json["counts"], after.json["verdict"]) == (before.json["counts"], before.json["verdict"])


async def test_reading_the_directory_needs_the_scope_manage(api: Api) -> None:
    """People do not want to give out their contacts: a key that reads deliveries does not show them."""
    _, secret = await api.services.api_keys.create("reader", ["read", "send"])
    response = await api.as_key(secret).call("GET", "/v1/users")
    assert (response.status, response.code) == (403, "SCOPE_MISSING")


async def test_a_group_is_the_same_in_both_normal_forms(api: Api) -> None:
    """A Mac writes й as two characters: there were two groups that looked the same."""
    composed, decomposed = "Йод-2", "И\u0306од-2"
    await api.call("POST", "/v1/users", {"id": decomposed, "contacts": {"sms": ["8\u00a0(999)\u00a0111-22-33"]}})
    made = await api.call("POST", "/v1/groups", {"id": decomposed, "members": [composed]})
    assert (made.status, made.json["id"]) == (201, composed)
    assert (await api.call("POST", "/v1/groups", {"id": composed})).code == "GROUP_EXISTS"
    body = delivery_body(recipients=[{"group": decomposed}], channels=["sms"], tags=[decomposed])
    sent = await api.call("POST", "/v1/deliveries", body)
    (listed,) = (await api.call("GET", f"/v1/deliveries?tag={quote(composed)}")).json["deliveries"]
    assert (sent.json["recipients"], listed["id"]) == (1, sent.json["id"])
    assert (await api.call("GET", f"/v1/groups/{quote(decomposed)}")).json["id"] == composed


async def test_members_come_by_name_in_pages_and_are_found_by_it(api: Api) -> None:
    names = ["ёж", "Анна Ли", "анна", None, "Яна"]
    for number, name in enumerate(names):
        await api.call("POST", "/v1/users", {"id": 9 - number, **({"name": name} if name else {})})
    await api.call("POST", "/v1/groups", {"id": "g", "members": [9, 8, 7, 6, 5]})

    async def found(query: str, path: str = "/v1/groups/g/members") -> list[int]:
        ids: list[int] = []
        cursor = ""
        while True:
            page = (await api.call("GET", f"{path}?limit=2&{query}{cursor}")).json
            ids += [one["id"] for one in page["users"]]
            if not page["next"]:
                return ids
            cursor = f"&cursor={page['next']}"

    assert await found("sort=name") == [6, 7, 8, 9, 5]
    assert await found("name=анн") == [7, 8]
    assert await found("sort=id") == [5, 6, 7, 8, 9]
    await api.call("POST", "/v1/users", {"id": 1, "name": "Вяз Анна", "role": "staff"})
    assert await found("sort=name", "/v1/users") == [7, 8, 1, 9, 5, 6]
    assert await found("sort=name&role=staff", "/v1/users") == [1]
    assert await found("sort=name&group=g&name=анн", "/v1/users") == [7, 8]
    assert await found("", "/v1/users") == [1, 5, 6, 7, 8, 9]
    await api.call("POST", "/v1/users", {"id": 2, "name": "Анна Анатольева"})
    assert await found("name=ан", "/v1/users") == [2, 1, 7, 8], "once, although two of its words fit"
    assert (await api.call("GET", "/v1/groups/none/members?sort=name")).code == "GROUP_NOT_FOUND"
    assert (await api.call("GET", "/v1/groups/g/members?sort=name&cursor=~41")).code == "CURSOR_MALFORMED"
