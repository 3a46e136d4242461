"""What a person who is signed in may read and change: its own, by every route (W-03)."""

import asyncio
from typing import Any

import pytest

from delivery.http.route import People
from delivery.routes import ROUTES
from tests.delivery.conftest import Api, ApiResponse, delivery_body
from tests.delivery.test_authentication import address
from tests.delivery.test_sessions import Browser, sign_in
from tests.support.outbox import Outbox
from tests.support.servers import several_shards
from tests.support.waiting import stays, until

__all__ = ["several_shards"]

EMAIL = "anna@example.org"
LATER = "2030-01-01T12:00:00Z"


@pytest.fixture
async def people(api: Api) -> None:
    """A trainer who owns one of two groups, an administrator, a student; each group has a member."""
    for number, role in ((1, "trainer"), (2, "trainer"), (3, "admin"), (4, "student"), (5, "student")):
        body = {"id": number, "name": f"P{number}", "role": role, "contacts": {"sms": f"+7999111220{number}"}}
        more = {"email": EMAIL} if number == 1 else {}
        assert (await api.call("POST", "/v1/users", {**body, **more})).status == 201
    await api.call("POST", "/v1/groups", {"id": "mine", "title": "Mine", "members": [4]})
    await api.call("POST", "/v1/groups", {"id": "theirs", "members": [5]})
    await api.call("POST", "/v1/supergroups", {"id": "all of mine", "groups": ["mine"]})
    for owned in ("1/group/mine", "1/supergroup/all of mine", "2/group/theirs"):
        assert (await api.call("PUT", f"/v1/ownerships/{owned}")).status == 204


async def as_person(api: Api, person: int) -> Browser:
    secret = await api.services.sign_in_links.create("default", person)
    return Browser(api, await sign_in(api, {"link": secret}))


async def code_for(api: Api, outbox: Outbox, email: str = EMAIL) -> tuple[str, str]:
    """The id of the request of a code, and the code."""
    requested = await api.call("POST", "/v1/sessions/codes", {"email": email}, headers={"Authorization": ""})
    assert requested.status == 202, requested.body
    await until(lambda: outbox.codes)
    return requested.json["code_id"], outbox.codes[-1]


@pytest.mark.usefixtures("people")
async def test_a_mailed_code_signs_the_person_in_once(api: Api, outbox: Outbox) -> None:
    code_id, code = await code_for(api, outbox, EMAIL.upper())
    browser = Browser(api, await sign_in(api, {"code_id": code_id, "code": f" {code.lower()} "}))
    me = (await browser.call("GET", "/v1/me")).json
    assert (me["kind"], me["id"], me["name"], me["role"], me["tenant"]) == ("person", 1, "P1", "trainer", "default")
    assert (me["rights"], me["owns_all"], me["timezone"]) == (["write", "read"], False, "UTC")
    assert me["groups"] == [{"id": "mine", "title": "Mine", "size": 1}]
    assert me["supergroups"] == [{"id": "all of mine", "title": None, "size": 1}]
    assert me["quota"] == {"used": 0, "limit": None, "resets_in": 0}
    again = await sign_in(api, {"code_id": code_id, "code": code})
    assert (again.status, again.code) == (403, "CODE_WRONG")


@pytest.mark.usefixtures("people")
async def test_nobody_learns_whether_an_address_has_a_person(api: Api, outbox: Outbox) -> None:
    """Known and unknown addresses get the same responses, whatever is tried."""
    seen = []
    for email in (EMAIL, "nobody@example.org"):
        bodies = [await api.call("POST", "/v1/sessions/codes", {"email": email}) for _ in range(6)]
        guesses = [await sign_in(api, {"code_id": bodies[0].json["code_id"], "code": "222222"}) for _ in range(7)]
        seen.append([(one.status, one.body if one.status == 403 else sorted(one.json)) for one in (*bodies, *guesses)])
    assert seen[0] == seen[1]
    assert [status for status, _ in seen[0]] == [202] * 5 + [429] + [403] * 7
    assert {message.to for message in outbox.sent} == {EMAIL}


@pytest.mark.usefixtures("people")
async def test_five_wrong_guesses_void_a_code(api: Api, outbox: Outbox) -> None:
    code_id, code = await code_for(api, outbox)
    for _ in range(5):
        assert (await sign_in(api, {"code_id": code_id, "code": "222222"})).code == "CODE_WRONG"
    assert (await sign_in(api, {"code_id": code_id, "code": code})).code == "CODE_WRONG"


@pytest.mark.usefixtures("people")
async def test_a_link_signs_in_once_and_is_stored_as_a_hash(api: Api) -> None:
    secret = await api.services.sign_in_links.create("default", 1)
    names = await api.keys()
    assert not [name for name in names if secret in name]
    (link,) = [name for name in names if name.startswith("signinlink:")]
    assert 0 < await api.store.redis.pttl(link) <= 600_000
    assert (await sign_in(api, {"link": secret})).json["id"] == 1
    again = await sign_in(api, {"link": secret})
    assert (again.status, again.code) == (403, "LINK_USED")


@pytest.mark.parametrize("body", [{}, {"key": "a", "link": "b"}, {"code": "a"}, {"code_id": "a"}], ids=str)
async def test_one_proof_is_required(api: Api, body: dict[str, str]) -> None:
    assert (await sign_in(api, body)).code == "ONE_FIELD_WANTED"


@pytest.mark.usefixtures("people")
async def test_a_deleted_person_loses_its_sessions_for_good(api: Api) -> None:
    browser, other = await as_person(api, 1), await as_person(api, 2)
    assert (await api.call("DELETE", "/v1/users/1")).status == 204
    assert (await browser.call("GET", "/v1/me")).code == "SESSION_ENDED"
    await api.call("POST", "/v1/users", {"id": 1})
    assert (await browser.call("GET", "/v1/me")).code == "SESSION_ENDED", "another person may get the id"
    assert (await other.call("GET", "/v1/me")).status == 200
    assert not [name for name in await api.keys() if name.startswith("sessions:") and ":user:1" in name]


@pytest.mark.usefixtures("people")
async def test_a_role_that_is_withdrawn_ends_its_rights_at_once(api: Api) -> None:
    browser = await as_person(api, 3)
    assert (await browser.call("GET", "/v1/users")).status == 200
    await api.call("PATCH", "/v1/users/3", {"role": "student"})
    assert (await browser.call("GET", "/v1/users")).code == "SCOPE_MISSING"
    assert (await browser.call("GET", "/v1/me")).json["rights"] == ["read"]


ROLES = {1: {"send", "read"}, 3: {"send", "read", "manage"}, 4: {"read"}}


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize("person", ROLES)
async def test_every_route_is_open_to_a_person_exactly_as_the_table_says(api: Api, person: int) -> None:
    """Invariant: a route that says nothing about people is refused to them."""
    browser = await as_person(api, person)
    for route in ROUTES:
        if route.path == "/v1/sessions":
            continue
        response = await browser.call(route.method, address(route.path), {} if route.body else None)
        if route.people is People.REFUSED:
            assert (response.status, response.code) == (403, "NOT_FOR_PEOPLE"), route
        elif route.scope and route.scope not in ROLES[person]:
            assert (response.status, response.code) == (403, "SCOPE_MISSING"), route
        else:
            assert response.status not in (401, 403), (route, response.body)


OPEN_TO_PEOPLE = {
    ("POST", "/v1/history-keys"),
    ("POST", "/v1/deliveries"),
    ("POST", "/v1/deliveries/preview"),
    ("GET", "/v1/deliveries"),
    ("GET", "/v1/deliveries/{id}"),
    ("PATCH", "/v1/deliveries/{id}"),
    ("DELETE", "/v1/deliveries/{id}"),
    ("POST", "/v1/deliveries/{id}/retry"),
    ("GET", "/v1/deliveries/{id}/events"),
    ("GET", "/v1/deliveries/{id}/recipients"),
    ("GET", "/v1/deliveries/{id}/reasons"),
    ("GET", "/v1/deliveries/{id}/recipients"),
    ("GET", "/v1/deliveries/{id}/reasons"),
    ("GET", "/v1/deliveries/{id}/recipients.csv"),
    ("GET", "/v1/deliveries/{id}/files/{file}"),
    ("GET", "/v1/deliveries/{id}/answers"),
    ("GET", "/v1/deliveries/{id}/answers.csv"),
    ("GET", "/v1/deliveries/{id}/answers/file"),
    ("POST", "/v1/deliveries/{id}/answers"),
    ("POST", "/v1/deliveries/{id}/answers:close"),
    ("POST", "/v1/deliveries/{id}/answers:reopen"),
    ("POST", "/v1/deliveries/{id}/answers:remind"),
    ("GET", "/v1/series"),
    ("POST", "/v1/series"),
    ("POST", "/v1/series/preview"),
    ("GET", "/v1/series/{id}"),
    ("PATCH", "/v1/series/{id}"),
    ("DELETE", "/v1/series/{id}"),
    ("GET", "/v1/threads"),
    ("GET", "/v1/threads/{thread}"),
    ("POST", "/v1/threads/{thread}/messages"),
    ("GET", "/v1/threads/{thread}/messages/{message}/files/{file}"),
    ("POST", "/v1/threads/{thread}:answering"),
    ("POST", "/v1/threads/{thread}:read"),
    ("POST", "/v1/threads/{thread}:mute"),
    ("POST", "/v1/threads/{thread}:hide"),
    ("POST", "/v1/threads/{thread}:report"),
    ("GET", "/v1/quota"),
    ("GET", "/v1/costs"),
    ("GET", "/v1/costs.csv"),
    ("GET", "/v1/addressees"),
    ("POST", "/v1/track"),
    ("GET", "/v1/live"),
    ("GET", "/v1/me/keys"),
    ("POST", "/v1/me/keys"),
    ("DELETE", "/v1/me/keys/{id}"),
    ("GET", "/v1/templates"),
    ("POST", "/v1/templates"),
    ("DELETE", "/v1/templates/{id}"),
}


def test_the_routes_for_people_are_as_listed_by_hand() -> None:
    """A new route for people belongs here only with its test that it shows and changes nothing of others."""
    own = {(route.method, route.path) for route in ROUTES if route.people is People.OWN}
    assert own == OPEN_TO_PEOPLE
    by_scope = {(route.scope, route.path.split("/")[2]) for route in ROUTES if route.people is People.BY_SCOPE}
    rooms = ("users", "contacts", "groups", "supergroups", "ownerships", "import", "export", "fields", "syncs")
    others = {("admin", "deliveries"), ("read", "channels"), ("send", "files"), ("", "me"), ("", "sessions")}
    assert by_scope == {*(("manage", room) for room in rooms), *others}


@pytest.mark.usefixtures("people")
async def test_a_delivery_of_another_does_not_exist_for_a_person(api: Api) -> None:
    made = await api.call("POST", "/v1/deliveries", delivery_body(sender={"id": 2}, deliver_at=LATER, far=True))
    browser, where, key = await as_person(api, 1), made.headers["Location"], made.json["history_key"]
    calls: list[tuple[str, str, Any]] = [
        ("GET", where, None),
        ("GET", f"/v1/deliveries/{key}", None),
        ("GET", f"{where}/events", None),
        ("GET", f"{where}/recipients", None),
        ("GET", f"{where}/reasons", None),
        ("GET", f"{where}/recipients", None),
        ("GET", f"{where}/reasons", None),
        ("GET", f"{where}/recipients.csv", None),
        ("GET", f"{where}/files/1", None),
        ("GET", f"{where}/answers", None),
        ("GET", f"{where}/answers.csv", None),
        ("GET", f"{where}/answers/file?recipient=1", None),
        ("POST", f"{where}/answers", {"recipient": 1, "value": "yes"}),
        ("POST", f"{where}/answers:close", None),
        ("POST", f"{where}/answers:reopen", None),
        ("PATCH", where, {"deliver_at": LATER, "far": True}),
        ("DELETE", where, None),
        ("POST", f"{where}/retry", None),
        ("POST", "/v1/track", {"history_key": key, "timeout": 0}),
    ]
    for method, path, body in calls:
        response = await browser.call(method, path, body)
        assert (response.status, response.code) == (404, "HISTORY_NOT_FOUND"), (method, path)
    assert (await browser.call("GET", "/v1/deliveries")).json["deliveries"] == []
    for path in ("/v1/deliveries?sender=2", "/v1/quota?sender=2"):
        assert (await browser.call("GET", path)).code == "NOT_YOURSELF", path
    reserved = await browser.call("POST", "/v1/history-keys", {"sender": {"id": 2}})
    assert reserved.code == "NOT_YOURSELF"
    assert (await api.call("GET", where)).json["state"] == "scheduled"


@pytest.mark.usefixtures("people")
async def test_a_person_sends_reads_moves_and_cancels_its_own(api: Api) -> None:
    browser = await as_person(api, 1)
    sent = await order(
        browser, recipients=[{"group": "mine"}, {"id": 1}, {"id": 4}], sender={"id": "1", "role": "admin"}
    )
    assert sent.status == 202, sent.body
    where = sent.headers["Location"]
    shown = (await browser.call("GET", where)).json
    assert shown["sender"] == {"id": 1, "name": "P1", "role": "trainer"}, "as the directory says"
    assert [one["id"] for one in (await browser.call("GET", "/v1/deliveries")).json["deliveries"]] == [shown["id"]]
    assert (await browser.call("PATCH", where, {"deliver_at": "2030-01-02T12:00:00Z", "far": True})).status == 200
    assert (await browser.call("DELETE", where)).json["cancelled"] == 2
    assert (await browser.call("GET", "/v1/quota?sender=1")).status == 200


async def order(browser: Browser, path: str = "/v1/deliveries", **more: Any) -> ApiResponse:
    body = {"sender": {"id": 1}, "text": "x", "recipients": [{"id": 4}], "deliver_at": LATER, "far": True, **more}
    return await browser.call("POST", path, body)


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"sender": {"id": 2}}, "NOT_YOURSELF"),
        ({"recipients": [{"group": "theirs"}]}, "NOT_OWNER"),
        ({"recipients": [{"id": 4}, {"id": 5}]}, "NOT_OWNER"),
        ({"recipients": [{"id": 2}]}, "NOT_OWNER"),
        ({"recipients": [{"id": 999}]}, "NOT_OWNER"),
        ({"recipients": [{"id": 4, "contacts": {"sms": "+79990000000"}}]}, "CONTACTS_NOT_ALLOWED"),
        ({"urgent": True}, "URGENT_NOT_ALLOWED"),
        ({"lane": "of another"}, "FOR_PROGRAMS"),
        ({"priority": 0}, "FOR_PROGRAMS"),
    ],
    ids=str,
)
async def test_a_person_cannot_send_beyond_its_rights(api: Api, more: dict[str, Any], code: str) -> None:
    browser = await as_person(api, 1)
    for path in ("/v1/deliveries", "/v1/deliveries/preview"):
        response = await order(browser, path, **more)
        assert (response.status, response.code) == (403, code), path


@pytest.mark.usefixtures("people")
async def test_an_administrator_writes_to_everybody_but_only_as_itself(api: Api) -> None:
    browser = await as_person(api, 3)
    addressed = [{"group": "theirs"}, {"id": 2}, {"id": "x", "contacts": {"sms": "+79990000000"}}]
    assert (await order(browser, sender={"id": 3}, recipients=addressed)).json["recipients"] == 3
    assert (await order(browser, sender={"id": 1})).code == "NOT_YOURSELF"


@pytest.mark.usefixtures("people")
async def test_a_person_uploads_a_file_for_its_message_but_neither_reads_nor_deletes_that_of_another(api: Api) -> None:
    browser = await as_person(api, 1)
    uploaded = await browser.upload("plan.pdf", b"Monday: mathematics")
    assert uploaded.status == 201, uploaded.body
    attached = {"attachments": [{"type": "document", "file": uploaded.json["id"]}]}
    where = (await order(browser, content=attached)).headers["Location"]
    (shown,) = (await browser.call("GET", where)).json["content"]["attachments"]
    assert (shown["file"], shown["name"]) == (uploaded.json["id"], "plan.pdf")
    for method in ("GET", "DELETE"):
        refused = await browser.call(method, f"/v1/files/{uploaded.json['id']}")
        assert (refused.status, refused.code) == (403, "NOT_FOR_PEOPLE"), "an id says not whose file it is"
    student = await as_person(api, 4)
    assert (await student.upload("plan.pdf", b"x")).code == "SCOPE_MISSING"


@pytest.mark.usefixtures("people")
async def test_nobody_gets_the_stored_response_to_another_person(api: Api) -> None:
    first, second = await as_person(api, 3), await as_person(api, 3)
    await api.call("POST", "/v1/users", {"id": 6, "role": "admin"})
    other = await as_person(api, 6)
    for browser in (first, second, other):
        browser.headers["Idempotency-Key"] = "k"
    made = [await one.call("POST", "/v1/groups", {"id": "new"}) for one in (first, second)]
    assert (made[0].status, made[1].body) == (201, made[0].body)
    assert (await other.call("POST", "/v1/groups", {"id": "new"})).code == "IDEMPOTENCY_KEY_REUSED"


@pytest.mark.usefixtures("people")
async def test_an_open_stream_ends_when_the_person_signs_out_everywhere(api: Api) -> None:
    browser = await as_person(api, 1)
    where = (await order(browser)).headers["Location"]
    headers = {"Cookie": f"ada_session={browser.secret}"}
    async with api.session.get(f"{api.url}{where}/events", headers=headers) as stream:
        await stays(lambda: not stream.content.at_eof())
        assert (await browser.call("DELETE", "/v1/sessions?all")).status == 204
        await asyncio.wait_for(stream.content.read(), 20)


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize(("person", "found"), [(1, {1, 4}), (2, {2, 5}), (3, {1, 2, 3, 4, 5, 6}), (6, {6})])
async def test_a_person_finds_those_to_whom_it_may_write_and_no_contact_of_them(
    api: Api, person: int, found: set[int]
) -> None:
    """A trainer finds the members of its groups. Where the tenant does not allow more, staff finds no more either."""
    await api.call("POST", "/v1/users", {"id": 6, "name": "P6", "role": "staff"})
    browser = await as_person(api, person)
    people = (await browser.call("GET", "/v1/addressees?name=p")).json["people"]
    assert {one["id"] for one in people} == found
    mine = (await browser.call("GET", "/v1/addressees?name=MINE")).json
    owned = [[{"id": "mine", "title": "Mine", "size": 1}], [{"id": "all of mine", "title": None, "size": 1}]]
    assert [mine["groups"], mine["supergroups"]] == (owned if person in (1, 3) else [[], []])
    assert all(one.keys() == {"id", "name", "groups"} for one in people)
    assert [one["groups"] for one in people if one["id"] == 4] in ([], [["Mine"]])
    others = await browser.call(
        "POST", "/v1/deliveries/preview", delivery_body(sender={"id": person}, recipients=[{"id": 5}])
    )
    assert (others.status == 200) == (5 in found), others.body


@pytest.mark.usefixtures("people")
async def test_a_program_finds_people_only_with_the_right_to_read_the_directory(api: Api) -> None:
    for scope, status in (("send", 403), ("manage", 403), ("send,manage", 200)):
        _, secret = await api.services.api_keys.create("a program", scope.split(","))
        response = await api.call("GET", "/v1/addressees?name=p", headers={"Authorization": f"Bearer {secret}"})
        assert response.status == status, (scope, response.body)


async def actions_of(api: Api) -> list[Any]:
    actions = (await api.call("GET", "/v1/actions?what=GET")).json["actions"]
    return [(one["who"], one["what"], one["target"], one["why"]) for one in actions]


@pytest.mark.usefixtures("people")
async def test_an_administrator_sees_what_others_have_sent_and_reads_a_text_only_with_a_reason(api: Api) -> None:
    people = [{"id": 4, "values": {"name": "Anna"}}, {"id": 5, "values": {"name": "Boris"}}]
    body = delivery_body(sender={"id": 2}, text="Secret {{name}}", recipients=people, deliver_at=LATER, far=True)
    made = await api.call("POST", "/v1/deliveries", body)
    head, where = await as_person(api, 3), made.headers["Location"]
    paths = ("/v1/deliveries", "/v1/deliveries?sender=2", "/v1/users/4/deliveries", where, f"{where}/recipients")
    for path in (*paths, f"{where}/recipients.csv", f"{where}/recipients.csv?excel&language=en", f"{where}/reasons"):
        response = await head.call("GET", path)
        assert response.status == 200, (path, response.body)
        assert b"Secret" not in response.body, path
        assert "Secret" not in response.headers.get("Content-Disposition", "")
    listed = [(await head.call("GET", path)).json for path in paths[:4]]
    assert [one["deliveries"][0]["text_hidden"] for one in listed[:3]] == [True] * 3
    assert listed[3]["text_hidden"]
    assert listed[3]["counts"]["recipients"] == 2
    assert await actions_of(api) == []
    head.headers["Ada-Reason"] = "complaint%20of%20a%20parent"
    read = await head.call("GET", where)
    assert read.json["text"] == "Secret {{name}}"
    assert [one["text"] for one in read.json["recipients"]] == ["Secret Anna", "Secret Boris"]
    what = "GET /v1/deliveries/{id}"
    assert await actions_of(api) == [("person:3", what, where, "complaint of a parent")]
    assert (await head.call("GET", "/v1/deliveries?text=Secret")).json["deliveries"] == []
    assert (await head.call("GET", "/v1/deliveries?text=Secret&sender=2")).code == "NOT_YOURSELF"


@pytest.mark.usefixtures("people")
async def test_an_administrator_changes_nothing_of_others_and_nobody_else_sees_it(api: Api) -> None:
    made = await api.call("POST", "/v1/deliveries", delivery_body(sender={"id": 2}, deliver_at=LATER, far=True))
    where, key, head = made.headers["Location"], made.json["history_key"], await as_person(api, 3)
    changes: list[tuple[str, str, Any]] = [
        ("GET", f"{where}/answers", None),
        ("GET", f"{where}/answers.csv", None),
        ("GET", f"{where}/answers/file?recipient=1", None),
        ("POST", f"{where}/answers", {"recipient": 1, "value": "yes"}),
        ("POST", f"{where}/answers:close", None),
        ("POST", f"{where}/answers:reopen", None),
        ("PATCH", where, {"deliver_at": LATER, "far": True}),
        ("DELETE", where, None),
        ("POST", f"{where}/retry", None),
        ("POST", "/v1/track", {"history_key": key, "timeout": 0}),
    ]
    for method, path, body in changes:
        response = await head.call(method, path, body)
        assert (response.status, response.code) == (404, "HISTORY_NOT_FOUND"), (method, path)
    own = await as_person(api, 2)
    assert "text_hidden" not in (await own.call("GET", where)).json
    for person in (1, 4):
        other = await as_person(api, person)
        other.headers["Ada-Reason"] = "curious"
        assert (await other.call("GET", where)).code == "HISTORY_NOT_FOUND"
        assert (await other.call("GET", "/v1/deliveries")).json["deliveries"] == []
