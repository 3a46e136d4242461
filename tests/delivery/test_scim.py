"""SCIM 2.0: what Entra and Okta send, what a client may not do, and the tester of scim2-models. The requests have the
shapes of their manuals and of reports of others; nothing was tried with the services themselves.
"""

import asyncio
import importlib
import sys
from typing import Any
from urllib.parse import quote

import pytest
from httpx2 import Client

from core.directory.syncs import SyncResult
from core.model.people import User, UserChange
from delivery.api.scim import endpoints
from delivery.http.options import Options
from tests.delivery.conftest import Api, ApiResponse

NOT_SUPPORTED = {"search_with_attributes"}
"""`POST /.search`, which RFC 7644 leaves to the server."""
USER, GROUP = "urn:ietf:params:scim:schemas:core:2.0:User", "urn:ietf:params:scim:schemas:core:2.0:Group"
ENTERPRISE = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
ANNA: dict[str, Any] = {  # as Entra sends it
    "schemas": [USER, ENTERPRISE],
    "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
    "userName": "Anna@example.org",
    "active": True,
    "displayName": "Anna Ivanova",
    "emails": [{"primary": True, "type": "work", "value": "Anna@example.org"}],
    "phoneNumbers": [{"type": "mobile", "value": "+7 999 000-00-01"}, {"type": "work", "value": "+7 999 000-00-09"}],
    "meta": {"resourceType": "User"},
    "name": {"formatted": "Anna Ivanova", "familyName": "Ivanova", "givenName": "Anna"},
    "preferredLanguage": "en-US",
    "timezone": "Europe/Moscow",
    "roles": [],
    ENTERPRISE: {"department": "Physics"},
}


class Provider:
    """An identity provider: a client with the key of a source."""

    def __init__(self, api: Api) -> None:
        self.api = api

    async def call(self, method: str, path: str, body: object = None, **more: Any) -> ApiResponse:
        headers = {"Content-Type": "application/scim+json; charset=utf-8", **more.pop("headers", {})}
        return await self.api.call(
            method, f"/scim/v2{path}", body, skip_auto_headers=["User-Agent"], headers=headers, **more
        )

    async def add(self, name: str, **more: Any) -> str:
        made = await self.call("POST", "/Users", {"schemas": [USER], "userName": name, **more})
        assert made.status == 201, made
        return str(made.json["id"])

    async def patch(self, path: str, *operations: dict[str, Any]) -> ApiResponse:
        return await self.call("PATCH", path, {"schemas": [PATCH], "Operations": operations})

    async def found(self, condition: str, kind: str = "Users") -> list[str]:
        page = (await self.call("GET", f"/{kind}?filter={quote(condition)}")).json
        assert page["totalResults"] == len(page["Resources"])
        return [one["id"] for one in page["Resources"]]

    async def person(self, given: str) -> User:
        return await self.api.services.core.directory.users.find("default", given)

    async def members(self, group: str) -> list[str]:
        return await self.api.services.core.directory.groups.member_ids("default", group)


async def provider_of(api: Api, name: str = "entra", tenant: str = "default") -> Provider:
    _, secret = await api.services.api_keys.create(name, ["scim"], tenant)
    return Provider(api.as_key(secret))


@pytest.fixture
async def entra(api: Api) -> Provider:
    return await provider_of(api)


async def test_the_tester_finds_nothing(api: Api, entra: Provider) -> None:
    for number in range(24):  # the tester deletes its people: they must not be half of all
        record = User(number, external_ids=(f"entra:{number}",), scim={"entra": f'{{"userName": "{number}"}}'})
        await api.services.core.directory.users.create("default", record)

    def check() -> list[str]:
        # Their import takes four seconds in a process with thousands of modules: each worker imports this file.
        from scim2_client.engines.httpx2 import SyncSCIMClient
        from scim2_tester import Status, check_server

        headers = {"Authorization": f"Bearer {entra.api.secret}"}
        with Client(base_url=f"{api.url}/scim/v2", headers=headers) as http:
            results = check_server(SyncSCIMClient(http))
        assert len(results) > 20
        failed = [one for one in results if one.status is not Status.SUCCESS and one.title not in NOT_SUPPORTED]
        return [f"{one.title}: {one.reason}" for one in failed]

    assert await asyncio.to_thread(check) == []


async def test_a_person_of_entra_is_in_the_directory(entra: Provider) -> None:
    assert await entra.found('userName eq "anna@example.org"') == []
    made = await entra.call("POST", "/Users", ANNA)
    assert (made.status, made.headers["Content-Type"]) == (201, "application/scim+json")
    assert (
        made.headers["Location"] == made.json["meta"]["location"] == f"{entra.api.url}/scim/v2/Users/{made.json['id']}"
    )
    person = await entra.person(made.json["id"])
    assert (person.name, person.email, person.locale) == ("Anna Ivanova", "anna@example.org", "en")
    assert person.contacts == {"email": ["anna@example.org"], "sms": ["+79990000001"]}
    assert person.fields == {"department": "Physics", "timezone": "Europe/Moscow"}
    assert person.external_ids[0] == "entra:0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef"
    for condition in (
        'userName eq "ANNA@example.org"',
        f'externalId eq "{ANNA["externalId"]}"',
        'emails.type eq "work"',
    ):
        assert await entra.found(condition) == [made.json["id"]], condition
    shown = (await entra.call("GET", f"/Users/{made.json['id']}?attributes=userName")).json
    assert shown["userName"] == "Anna@example.org"
    assert "emails" not in shown
    again = await entra.call("POST", "/Users", ANNA)
    assert (again.status, again.json["scimType"], again.json["status"]) == (409, "uniqueness", "409")


async def test_telephones_of_a_hand_and_of_no_type_are_contacts_and_others_are_not(entra: Provider) -> None:
    kinds = {"": 1, "mobile": 2, "Mobile": 3, "work": 4, "fax": 5, "other": 6}
    phones = [{"value": f"+7999000000{n}", **({"type": kind} if kind else {})} for kind, n in kinds.items()]
    person = await entra.person(await entra.add("anna", phoneNumbers=phones))
    assert person.contacts == {"sms": [f"+7999000000{n}" for n in (1, 2, 3)]}


async def test_the_same_person_sent_at_once_is_one_person(entra: Provider) -> None:
    answers = await asyncio.gather(*(entra.call("POST", "/Users", ANNA) for _ in range(5)))
    assert sorted(one.status for one in answers) == [201, 409, 409, 409, 409]
    assert len(await entra.found("externalId pr")) == 1


async def test_the_odd_operations_of_entra(entra: Provider) -> None:
    given = (await entra.call("POST", "/Users", ANNA)).json["id"]
    users = entra.api.services.core.directory.users
    await users.add_contact("default", given, "telegram", "100001")
    await users.add_contact("default", given, "sms", "+79990000077")
    operations = (
        {"op": "Replace", "path": "displayName", "value": "Anna Petrova"},
        {"op": "Add", "path": 'emails[type eq "home"].value', "value": "home@example.org"},
        {"op": "Replace", "path": 'phoneNumbers[type eq "mobile"].value', "value": "+79990000002"},
        {"op": "Add", "path": f"{ENTERPRISE}:department", "value": "Chemistry"},
        {"op": "Add", "path": f"{ENTERPRISE}:manager", "value": "unknown here"},
        {"op": "Replace", "path": 'roles[primary eq "True"].value', "value": "unknown here"},
        {"op": "replace", "value": {'emails[type eq "other"].value': "other@example.org"}},
        {"op": "Replace", "value": {"name.givenName": "Anna", "timezone": "Asia/Omsk"}},
    )
    changed = await entra.patch(f"/Users/{given}", *operations)
    assert changed.status == 200, changed
    person = await entra.person(given)
    assert (person.name, person.fields) == ("Anna Petrova", {"department": "Chemistry", "timezone": "Asia/Omsk"})
    assert person.contacts == {  # what the person has linked itself stays
        "telegram": ["100001"],
        "email": ["anna@example.org", "home@example.org", "other@example.org"],
        "sms": ["+79990000077", "+79990000002"],
    }


async def test_who_is_not_active_is_blocked_until_it_is(entra: Provider) -> None:
    given = (await entra.call("POST", "/Users", ANNA)).json["id"]
    users = entra.api.services.core.directory.users
    for operation in (
        {"op": "Replace", "path": "active", "value": "False"},
        {"op": "replace", "value": {"active": False}},
        {"op": "replace", "value": {"active": "false"}},
    ):
        assert (await entra.patch(f"/Users/{given}", operation)).json["active"] is False
        assert (await entra.person(given)).blocked
        assert await entra.found('active eq false and userName sw "anna"') == [given]
        if operation["op"] == "Replace":
            await users.update("default", given, UserChange(blocked=False))
            await entra.patch(f"/Users/{given}", {"op": "replace", "path": "displayName", "value": "A"})
            assert not (await entra.person(given)).blocked, "an administrator has ended it"
        await entra.patch(f"/Users/{given}", {"op": "Replace", "path": "active", "value": "True"})
        assert not (await entra.person(given)).blocked
    await users.update("default", given, UserChange(blocked=True))
    await entra.patch(f"/Users/{given}", {"op": "replace", "path": "displayName", "value": "B"})
    assert (await entra.person(given)).blocked  # by an administrator: not ended by the source
    for is_active in (False, False, True):
        await entra.patch(f"/Users/{given}", {"op": "replace", "value": {"active": is_active}})
        person = await entra.person(given)
        system = "entra" if is_active else "entra-gone"
        assert (person.blocked, person.external_ids[0].partition(":")[0]) == (True, system)
    await entra.call("DELETE", f"/Users/{given}")
    assert (await entra.call("POST", "/Users", ANNA)).json["id"] == given
    assert (await entra.person(given)).blocked, "to leave and come back does not end it"


async def test_who_is_deleted_is_blocked_and_may_come_back(entra: Provider) -> None:
    given = (await entra.call("POST", "/Users", ANNA)).json["id"]
    assert (await entra.call("DELETE", f"/Users/{given}")).status == 204
    person = await entra.person(given)
    assert person.blocked
    assert person.name == "Anna Ivanova"
    assert (await entra.call("GET", f"/Users/{given}")).status == 404
    assert await entra.found('userName eq "anna@example.org"') == []
    new_object = {**ANNA, "externalId": "another object of the same person"}
    assert (await entra.call("POST", "/Users", new_object)).json["id"] == given
    person = await entra.person(given)
    assert not person.blocked
    assert person.external_ids == ["entra:another object of the same person", "entra-name:anna@example.org"]
    plain = await entra.add("boris")
    await entra.call("DELETE", f"/Users/{plain}")
    assert await entra.add("boris", externalId="7") == plain, "the name of its first object is all that is known"
    two = [{"value": "old@example.org"}, {"value": "new@example.org", "primary": True}]
    assert (await entra.person(await entra.add("vera", emails=two))).email == "new@example.org"


async def test_okta_replaces_a_person_as_a_whole(entra: Provider) -> None:
    given = await entra.add(
        "boris@example.org", externalId="00u1", emails=[{"value": "boris@example.org", "primary": True}]
    )
    body = {"schemas": [USER], "id": given, "userName": "boris.k@example.org", "active": True, "externalId": "00u1",
            "name": {"givenName": "Boris", "familyName": "Kim"}, "groups": [], "password": "x",
            "emails": [{"primary": True, "value": "boris.k@example.org", "type": "work"}]}  # fmt: skip
    assert (await entra.call("PUT", f"/Users/{given}", body)).status == 200
    person = await entra.person(given)
    assert (person.name, person.email, person.contacts) == (
        *("Kim Boris", "boris.k@example.org"), {"email": ["boris.k@example.org"]},
    )  # fmt: skip
    assert person.external_ids == ["entra:00u1", "entra-name:boris.k@example.org"]
    page = (await entra.call("GET", "/Users?startIndex=1&count=100")).json
    assert (page["totalResults"], page["startIndex"], page["itemsPerPage"]) == (1, 1, 1)
    assert (await entra.call("GET", "/Users?startIndex=2&count=1")).json["Resources"] == []


@pytest.mark.parametrize("by_value", [True, False])
async def test_members_come_and_go_both_ways(entra: Provider, by_value: bool) -> None:
    anna, boris = await entra.add("anna"), await entra.add("boris")
    users, groups = entra.api.services.core.directory.users, entra.api.services.core.directory.groups
    await users.create("default", User("guest"))
    made = await entra.call(
        "POST", "/Groups", {"schemas": [GROUP], "externalId": "8aa1a0c0", "displayName": "CHEM 1", "members": []}
    )
    path = f"/Groups/{quote(made.json['id'])}"
    await groups.add_member("default", "entra-CHEM 1", "guest")
    await entra.patch(
        path, {"op": "Add", "path": "members", "value": [{"$ref": None, "value": anna}, {"value": boris}]}
    )
    assert await entra.members("entra-CHEM 1") == sorted(["guest", anna, boris])
    leave = {"op": "Remove", "path": "members", "value": [{"value": boris}]}
    changed = await entra.patch(path, leave if by_value else {"op": "remove", "path": f'members[value eq "{boris}"]'})
    assert [one["value"] for one in changed.json["members"]] == [anna]
    assert await entra.members("entra-CHEM 1") == sorted(["guest", anna])
    await entra.patch(path, {"op": "replace", "value": {"id": made.json["id"], "displayName": "CHEM 2"}})
    page = (await entra.call("GET", "/Groups?excludedAttributes=members&filter=displayName+eq+%22chem+2%22")).json
    assert [(one["externalId"], "members" in one) for one in page["Resources"]] == [("8aa1a0c0", False)]
    assert await entra.found(f'members eq "{anna}"', "Groups") == ["entra-CHEM 1"]
    assert (await entra.call("DELETE", path)).status == 204
    assert (await entra.call("GET", path)).status == 404
    assert not (await entra.person(anna)).blocked


async def test_a_person_of_two_sources_stays_with_the_other(entra: Provider) -> None:
    directory = entra.api.services.core.directory
    await directory.syncs.report("default", "1c", SyncResult("people.csv", columns=("name",)))
    await directory.users.create("default", User(7, "Anna of 1C", "anna@example.org", external_ids=("1c:7",)))
    assert (await entra.call("POST", "/Users", ANNA)).json["id"] == "7"
    await entra.patch("/Users/7", {"op": "replace", "path": "active", "value": False})
    person = await entra.person("7")
    assert (person.name, person.blocked, person.fields["department"]) == ("Anna of 1C", False, "Physics")
    await entra.call("DELETE", "/Users/7")
    assert not (await entra.person("7")).blocked


# what a client may not do


async def test_a_source_cannot_be_emptied(entra: Provider) -> None:
    people = [await entra.add(f"p{number}") for number in range(14)]
    statuses = [(await entra.call("DELETE", f"/Users/{one}")).status for one in people[:4]]
    statuses += [(await entra.patch(f"/Users/{one}", {"op": "replace", "path": "active", "value": False})).status
                 for one in people[4:]]  # fmt: skip
    assert statuses == [204] * 4 + [200] * 2 + [409] * 8
    assert sum([(await entra.person(one)).blocked for one in people]) == 6
    (source,) = (await entra.api.as_key("ada_admin").call("GET", "/v1/syncs")).json["sources"]
    assert source["last"]["fault"] == "leaving"
    assert "entra" in source["last"]["detail"]
    await entra.add("p15")
    core = entra.api.services.core
    (state,) = await core.directory.syncs.all("default")
    assert state.last
    assert state.last.fault == "leaving", "the refusal stays on the page"
    assert (await entra.call("DELETE", f"/Users/{people[6]}")).status == 204, "what was refused does not count"
    await entra.api.as_key("ada_admin").call("DELETE", "/v1/syncs/entra")
    assert [(await entra.call("DELETE", f"/Users/{one}")).status for one in people[7:9]] == [204, 204]
    await core.directory.syncs.report("default", "entra", SyncResult("SCIM", fault="leaving"))
    core.store.clock_offset_ms += 25 * 3_600_000
    await entra.add("p16")
    (state,) = await core.directory.syncs.all("default")
    assert state.last
    assert state.last.fault is None, "for a day"


async def test_one_request_empties_no_group(entra: Provider) -> None:
    people = [{"value": await entra.add(f"p{number}")} for number in range(7)]
    made = await entra.call("POST", "/Groups", {"schemas": [GROUP], "displayName": "all", "members": people})
    for body in ({"op": "remove", "path": "members"}, {"op": "replace", "path": "members", "value": []}):
        refused = await entra.patch("/Groups/entra-all", body)
        assert refused.status == 409
        assert "SCIM_GROUP_EMPTIED" in refused.json["detail"]
    renamed = {"schemas": [GROUP], "displayName": "everybody"}  # without members
    assert (await entra.call("PUT", "/Groups/entra-all", renamed)).status == 200
    assert len(made.json["members"]) == len(await entra.members("entra-all")) == 7


async def test_administrators_are_only_blocked(entra: Provider) -> None:
    users = entra.api.services.core.directory.users
    await users.create("default", User("boss", "Boss", "anna@example.org", role="admin"))
    refused = await entra.call("POST", "/Users", ANNA)
    assert refused.status == 403
    assert "SCIM_ADMINISTRATOR" in refused.json["detail"]
    given = await entra.add("boris", emails=[{"value": "boris@example.org"}])
    await users.update("default", given, UserChange(role="admin"))
    theft = {"op": "replace", "path": "emails[primary eq true].value", "value": "thief@example.org"}
    assert (await entra.patch(f"/Users/{given}", theft)).status == 403
    assert (await entra.patch(f"/Users/{given}", {"op": "replace", "path": "active", "value": False})).status == 200
    assert (await entra.person(given)).blocked


async def test_strangers_and_other_sources_see_nothing(api: Api, entra: Provider) -> None:
    given = (await entra.call("POST", "/Users", ANNA)).json["id"]
    await entra.call("POST", "/Groups", {"schemas": [GROUP], "displayName": "CHEM 1"})
    await api.call("POST", "/v1/groups", {"id": "theirs"})
    for other in (await provider_of(api, "okta"), await provider_of(api, "entra", "school-2")):
        listed = [(await other.call("GET", path)).json["totalResults"] for path in ("/Users", "/Groups")]
        assert listed == [0, 0]
        for path in (f"/Users/{given}", "/Groups/entra-CHEM%201", "/Groups/theirs"):
            for method in ("GET", "PUT", "PATCH", "DELETE"):
                body = {"schemas": [PATCH], "Operations": [{"op": "replace", "path": "displayName", "value": "x"}]}
                body = {"schemas": [USER], "userName": "x", "displayName": "x"} if method == "PUT" else body
                assert (await other.call(method, path, None if method in ("GET", "DELETE") else body)).status in (
                    400,
                    404,
                )
    await api.call("POST", "/v1/users", {"id": 42, "name": "By hand"})
    boris = await (await provider_of(api, "azure")).add("boris")
    for stranger in ("42", "43", boris):
        group = {"schemas": [GROUP], "displayName": "x", "members": [{"value": stranger}]}
        assert (await entra.call("POST", "/Groups", group)).status == 400
        joining = {"op": "add", "path": "members", "value": [{"value": stranger}]}
        assert (await entra.patch("/Groups/entra-CHEM%201", joining)).status == 400
    assert (await entra.person(given)).name == "Anna Ivanova"
    for secret in ("ada_admin", "ada_unknown"):  # neither an operator nor a stranger is a source
        refused = await Provider(api.as_key(secret)).call("GET", "/Users")
        assert (refused.status, refused.headers["Content-Type"]) == (
            403 if secret == "ada_admin" else 401,
            "application/scim+json",
        )
    assert (await entra.api.call("GET", "/v1/users")).status == 403  # and a source is nothing else


@pytest.mark.parametrize("name", ["oidc", "Entra", "a-left", "x" * 28])
async def test_a_source_has_a_name_that_is_no_others(api: Api, name: str) -> None:
    refused = await api.call("POST", "/v1/api-keys", {"name": name, "scopes": ["scim"]})
    assert (refused.status, refused.code) == (400, "KEY_NAME_MALFORMED")
    assert (await api.call("POST", "/v1/api-keys", {"name": "entra", "scopes": ["scim"]})).status == 201


MALFORMED: list[tuple[str, str, object, int, str | None]] = [
    ("GET", "/Users?filter=userName+zz+1", None, 400, "invalidFilter"),
    ("GET", "/Users?filter=" + "(" * 500, None, 400, "invalidFilter"),
    ("GET", "/Users?attributes=name[", None, 400, "invalidPath"),
    ("GET", "/Users?count=many", None, 400, "invalidValue"),
    ("POST", "/Users", b"{", 400, "invalidSyntax"),
    ("POST", "/Users", b"[" * 30_000, 400, "invalidSyntax"),
    ("POST", "/Users", b'{"userName": "a", "userName": "b"}', 400, "invalidSyntax"),
    ("POST", "/Users", {"schemas": [USER]}, 400, "invalidValue"),
    ("POST", "/Users", {"schemas": [USER], "userName": "x", "active": "maybe"}, 400, "invalidValue"),
    ("POST", "/Users", {"schemas": [USER], "userName": "x" * 300}, 400, "invalidValue"),
    ("POST", "/Users", {"schemas": [USER], "userName": "a\x00b"}, 400, "invalidValue"),
    ("POST", "/Users", {"schemas": [USER], "userName": "x", "emails": [{"value": "a@b\nc"}]}, 400, "invalidValue"),
    ("POST", "/Groups", {"schemas": [GROUP], "displayName": "x" * 300}, 400, "invalidValue"),
    ("PATCH", "/Users/P", {"schemas": [PATCH], "Operations": [{"op": "remove"}]}, 400, "noTarget"),
    ("PATCH", "/Users/P", {"schemas": [PATCH], "Operations": [{"op": "boil"}]}, 400, "invalidValue"),
    (
        "PATCH",
        "/Users/P",
        {"schemas": [PATCH], "Operations": [{"op": "remove", "path": "userName"}]},
        400,
        "mutability",
    ),
    ("POST", "/Users", {"schemas": [USER], "userName": "\ud800"}, 400, "invalidValue"),
    ("GET", '/Users?filter=externalId eq "\\ud800"', None, 200, None),
    ("POST", "/Users", {"schemas": [USER], "userName": "x" * 33_000}, 413, None),
    (
        "PATCH",
        "/Users/P",
        {"schemas": [PATCH], "Operations": [{"op": "replace", "path": "displayName", "value": "x"}] * 101},
        400,
        "invalidValue",
    ),
    ("PUT", "/Users/nobody", {"schemas": [USER], "userName": "x"}, 404, None),
    ("POST", "/Bulk", {}, 404, None),
    ("DELETE", "/Users", None, 405, None),
]


async def test_what_is_malformed_is_refused_as_scim(entra: Provider) -> None:
    given = await entra.add("anna")
    for method, path, body, status, keyword in MALFORMED:
        refused = await entra.call(method, path.replace("/P", f"/{given}"), body)
        assert (refused.status, refused.json.get("scimType")) == (status, keyword), (refused, body)
        assert status == 200 or refused.json["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
    statuses = []
    for number in range(3):
        phones = [{"value": f"{number} {one} {'x' * 40}", "type": "work"} for one in range(200)]
        added = await entra.patch(f"/Users/{given}", {"op": "add", "path": "phoneNumbers", "value": phones})
        statuses.append(added.status)
    assert statuses == [200, 200, 400], "what is said of a person does not grow without end"


class TestOversized:
    @pytest.fixture
    def options(self) -> Options:
        return Options(body_limit=2000)

    async def test_a_large_body_is_refused(self, entra: Provider) -> None:
        refused = await entra.call("POST", "/Users", {**ANNA, "displayName": "x" * 2000})
        assert (refused.status, refused.json["status"]) == (413, "413")


async def test_the_library_is_imported_by_the_first_request(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scim2_models", None)
    monkeypatch.delitem(sys.modules, "delivery.api.scim.resources", raising=False)
    importlib.reload(endpoints)
    refused = await (await provider_of(api)).call("GET", "/Users")
    assert refused.status == 503
    assert "ada[scim]" in refused.json["detail"]
