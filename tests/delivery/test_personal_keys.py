"""Personal keys: a person's script acts as the person, never with more rights, and ends with the person (I-07)."""

import json
from argparse import Namespace
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from cli.command import CommandFailed
from cli.commands.installation import api_keys
from cli.commands.start.people_findings import check_personal_keys
from cli.settings.settings import Settings
from core.admission.actions import ActionFilter, ActionLog
from core.errors import Forbidden, NotFound
from core.sessions.personal_keys import MOST_KEYS
from tests.delivery.conftest import Api, delivery_body
from tests.delivery.test_people_signed_in import as_person, people
from tests.delivery.test_sessions import Browser, sign_in
from tests.support.servers import several_shards

__all__ = ["people", "several_shards"]

KEY = {"name": "marks.py", "scopes": ["send", "read"], "days": 30}


async def made(api: Api, browser: Browser, **more: object) -> tuple[Api, str]:
    """A client with a new personal key, and the id of the key."""
    response = await browser.call("POST", "/v1/me/keys", {**KEY, **more})
    assert response.status == 201, response.body
    assert response.headers["Cache-Control"] == "no-store"
    return api.as_key(response.json["secret"]), response.json["key"]["id"]


def sent_by(person: int) -> dict[str, object]:
    return delivery_body(sender={"id": person}, recipients=[{"id": 4}])


@pytest.mark.usefixtures("people")
async def test_a_script_sends_as_its_person_and_as_nobody_else(api: Api) -> None:
    browser = await as_person(api, 1)
    script, key_id = await made(api, browser)
    (listed,) = (await browser.call("GET", "/v1/me/keys")).json["keys"]
    assert (listed["id"], listed["name"], listed["scopes"], listed["used_at"]) == (
        key_id, "marks.py", ["read", "send"], None,
    )  # fmt: skip
    response = await script.call("POST", "/v1/deliveries", sent_by(1))
    assert response.status == 202, response.body
    assert (await script.call("POST", "/v1/deliveries", sent_by(2))).code == "NOT_YOURSELF"
    me = (await script.call("GET", "/v1/me")).json
    assert (me["kind"], me["id"], me["scopes"]) == ("person", 1, ["read", "send"])
    body = (await browser.call("GET", "/v1/me/keys")).body.decode()
    assert '"used_at":null' not in body
    assert script.secret not in body
    stored = [(name, await api.store.redis.dump(name) or b"") for name in await api.keys()]
    assert not [name for name, dumped in stored if script.secret in name or script.secret.encode() in dumped]


@pytest.mark.usefixtures("people")
async def test_a_key_has_never_a_right_that_its_person_has_not(api: Api) -> None:
    admin, student = await as_person(api, 3), await as_person(api, 4)
    refused = await student.call("POST", "/v1/me/keys", KEY)
    assert (refused.code, refused.json["errors"][0]["path"]) == ("SCOPE_MISSING", "scopes.0")
    assert (await admin.call("POST", "/v1/me/keys", {**KEY, "scopes": ["operator"]})).code == "WRONG_VALUE"
    reader, _ = await made(api, admin, scopes=["read"])
    assert (await reader.call("GET", "/v1/deliveries")).status == 200
    assert (await reader.call("GET", "/v1/users")).code == "SCOPE_MISSING"
    manager, _ = await made(api, admin, scopes=["manage"])
    assert (await manager.call("GET", "/v1/users")).status == 200
    assert (await manager.call("POST", "/v1/deliveries", sent_by(3))).code == "SCOPE_MISSING"
    await api.call("PATCH", "/v1/users/3", {"role": "student"})
    assert (await manager.call("GET", "/v1/users")).code == "SCOPE_MISSING", "the role was withdrawn"


@pytest.mark.usefixtures("people")
async def test_a_key_makes_and_revokes_no_key_and_is_no_cookie(api: Api) -> None:
    browser = await as_person(api, 1)
    script, key_id = await made(api, browser)
    for method, path, body in (("GET", "", None), ("POST", "", KEY), ("DELETE", f"/{key_id}", None)):
        assert (await script.call(method, f"/v1/me/keys{path}", body)).code == "PERSON_SESSION_REQUIRED"
        assert (await api.call(method, f"/v1/me/keys{path}", body)).code == "PERSON_SESSION_REQUIRED"
    browser.secret, cookie = script.secret, browser.secret
    assert (await browser.call("GET", "/v1/me")).code == "SESSION_ENDED"
    assert (await api.as_key(cookie).call("GET", "/v1/me")).code == "KEY_UNKNOWN"
    assert (await sign_in(api, {"key": script.secret})).code == "KEY_UNKNOWN"


@pytest.mark.usefixtures("people")
async def test_a_key_ends_when_it_is_revoked_expires_or_its_person_leaves(api: Api) -> None:
    browser, other = await as_person(api, 1), await as_person(api, 2)
    script, key_id = await made(api, browser)
    assert (await other.call("DELETE", f"/v1/me/keys/{key_id}")).code == "KEY_NOT_FOUND"
    assert (await other.call("GET", "/v1/me/keys")).json["keys"] == []
    assert (await browser.call("DELETE", f"/v1/me/keys/{key_id}")).status == 204
    assert (await script.call("GET", "/v1/me")).code == "KEY_UNKNOWN"
    expiring, _ = await made(api, browser, days=1)
    assert (await expiring.call("GET", "/v1/me")).status == 200, "a use is noted, and does not prolong it"
    lifetimes = {name: await api.store.redis.pttl(name) for name in await api.keys() if name.startswith("session:")}
    (name,) = [name for name, left in lifetimes.items() if left <= 86_400_000]
    (listed,) = [name for name in await api.keys() if name.startswith("sessions:") and name.endswith("user:1")]
    assert await api.store.redis.pttl(listed) > 86_400_000, "the list lives as long as the last that it names"
    assert lifetimes[name] > 0
    await api.store.redis.pexpireat(name, 1)
    assert (await expiring.call("GET", "/v1/me")).code == "KEY_UNKNOWN"
    everywhere, _ = await made(api, browser)
    assert (await browser.call("DELETE", "/v1/sessions?all")).status == 204
    assert (await everywhere.call("GET", "/v1/me")).code == "KEY_UNKNOWN"


@pytest.mark.usefixtures("people")
async def test_an_administrator_lists_and_revokes_the_keys_of_others(api: Api) -> None:
    """Person 1 has lost its laptop, and nobody who can be reached has the machine on which Ada runs."""
    owner, admin = await as_person(api, 1), await as_person(api, 3)
    script, key_id = await made(api, owner)
    (listed,) = (await admin.call("GET", "/v1/users/1/keys")).json["keys"]
    assert (listed["id"], listed["name"]) == (key_id, "marks.py")
    assert (await admin.call("GET", "/v1/users/3/keys")).json["keys"] == []
    assert (await admin.call("DELETE", f"/v1/users/3/keys/{key_id}")).code == "KEY_NOT_FOUND"
    assert (await admin.call("GET", "/v1/users/99/keys")).code == "USER_NOT_FOUND"
    for stranger in (await as_person(api, 2), script):
        assert (await stranger.call("GET", "/v1/users/1/keys")).code == "SCOPE_MISSING"
        assert (await stranger.call("DELETE", f"/v1/users/1/keys/{key_id}")).code == "SCOPE_MISSING"
    _, other = await api.services.api_keys.create("admin", ["admin"], "theirs")
    assert (await api.as_key(other).call("DELETE", f"/v1/users/1/keys/{key_id}")).code == "USER_NOT_FOUND"
    assert (await script.call("GET", "/v1/me")).status == 200, "the key is as good as before"
    assert (await admin.call("DELETE", f"/v1/users/1/keys/{key_id}")).status == 204
    assert (await script.call("GET", "/v1/me")).code == "KEY_UNKNOWN"
    entries, _ = await ActionLog(api.store).page("default", ActionFilter(), None, 100)
    logged = entries[0].action
    assert (logged.who, logged.what) == ("person:3", "DELETE /v1/users/{id}/keys/{key}")
    assert logged.target.endswith(f"/users/1/keys/{key_id}")


@pytest.mark.usefixtures("people")
async def test_doctor_names_the_keys_that_end_soon(api: Api) -> None:
    owner = await as_person(api, 1)
    await made(api, owner, days=90)
    assert (await check_personal_keys(api.store)).is_good is True
    await made(api, owner, name="old.py", days=13)
    finding = await check_personal_keys(api.store)
    assert finding.is_good is None
    assert "old.py of 1 on " in finding.detail
    assert "marks.py" not in finding.detail


@pytest.mark.usefixtures("people")
async def test_the_keys_of_all_people_are_read_without_the_sessions_and_other_keys_of_the_store(api: Api) -> None:
    async def calls() -> int:
        stats: dict[str, Any] = await api.store.redis.info("commandstats")
        return sum(one["calls"] for name, one in stats.items() if name != "cmdstat_info")

    browsers = [await as_person(api, 1) for _ in range(20)]
    for number in range(5):
        await made(api, browsers[number], name=f"{number}.py", days=13)
    revoked = (await browsers[0].call("GET", "/v1/me/keys")).json["keys"][0]["id"]
    assert (await browsers[0].call("DELETE", f"/v1/me/keys/{revoked}")).status == 204
    before = await calls()
    assert "end within 14 days: 1.py of 1" in (await check_personal_keys(api.store)).detail
    first = await calls() - before
    session = '{"tenant":"default","begun_at":"2026-01-01T00:00:00Z","key":"a program"}'
    for number in range(2000):
        await api.store.command("SET", f"session:{{0}}:{number}", session, "PX", 60_000)
    before = await calls()
    finding = await check_personal_keys(api.store)
    assert finding.detail.count(".py of 1 on") == 4
    assert await calls() - before == first < 10
    assert (await browsers[0].call("DELETE", "/v1/sessions?all")).status == 204
    assert (await check_personal_keys(api.store)).is_good


@pytest.mark.usefixtures("people")
async def test_a_blocked_person_is_refused_and_a_new_person_with_the_id_gets_no_old_key(api: Api) -> None:
    """A session that is begun later, and ends earlier, leaves the key in the list by which a deletion ends it."""
    browser = await as_person(api, 1)
    script, _ = await made(api, browser, days=366)
    await as_person(api, 1)
    (listed,) = [name for name in await api.keys() if name.startswith("sessions:") and name.endswith("user:1")]
    assert await api.store.redis.pttl(listed) > 365 * 86_400_000
    for is_blocked, status in ((True, 401), (False, 200)):
        await api.call("PATCH", "/v1/users/1", {"blocked": is_blocked})
        assert (await script.call("GET", "/v1/me")).status == status
    assert (await api.call("DELETE", "/v1/users/1")).status == 204
    assert (await api.call("POST", "/v1/users", {"id": 1, "role": "admin"})).status == 201
    assert (await script.call("GET", "/v1/me")).code == "KEY_UNKNOWN"


async def test_a_key_reaches_only_its_tenant(api: Api) -> None:
    for tenant in ("mine", "theirs"):
        _, admin = await api.services.api_keys.create("admin", ["admin"], tenant)
        body = {"id": 1, "name": tenant, "role": "admin"}
        assert (await api.as_key(admin).call("POST", "/v1/users", body)).status == 201
    secret = await api.services.sign_in_links.create("mine", 1)
    script, _ = await made(api, Browser(api, await sign_in(api, {"link": secret})), scopes=["manage", "send"])
    assert (await script.call("GET", "/v1/me")).json["tenant"] == "mine"
    assert {one["name"] for one in (await script.call("GET", "/v1/users")).json["users"]} == {"mine"}


@pytest.mark.usefixtures("people")
async def test_a_person_has_a_limited_number_of_well_formed_keys(api: Api) -> None:
    browser = await as_person(api, 1)
    for change, code in (
        ({"days": 367}, "OUT_OF_RANGE"), ({"days": 0}, "OUT_OF_RANGE"), ({"scopes": []}, "TOO_SHORT"),
        ({"name": " "}, "KEY_NAME_MALFORMED"),
    ):  # fmt: skip
        assert (await browser.call("POST", "/v1/me/keys", {**KEY, **change})).code == code
    for _ in range(MOST_KEYS):
        await made(api, browser)
    refused = await browser.call("POST", "/v1/me/keys", KEY)
    assert (refused.status, refused.code) == (409, "KEY_LIMIT_REACHED")


@pytest.mark.usefixtures("people")
async def test_the_verb_key_makes_and_revokes_a_key_of_a_person_and_both_ways_are_in_the_action_log(
    api: Api, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def given(**more: object) -> Namespace:
        usual: dict[str, object] = {"name": "marks.py", "person": "1", "tenant": "default", "scope": None, "days": None}
        usual["settings"] = Settings(data=tmp_path)
        return Namespace(**{**usual, "json": True, "zone": UTC, **more})

    await api_keys.create_personal(api.store, given())
    created = json.loads(capsys.readouterr().out)
    script = api.as_key(created["secret"])
    assert (await script.call("POST", "/v1/deliveries", sent_by(1))).status == 202
    assert (await script.call("POST", "/v1/deliveries", sent_by(2))).code == "NOT_YOURSELF"
    with pytest.raises(Forbidden):
        await api_keys.create_personal(api.store, given(person="4"))
    for days in (0, 367):
        with pytest.raises(CommandFailed):
            await api_keys.create_personal(api.store, given(days=days))
    await api.call("PATCH", "/v1/users/1", {"blocked": True})
    with pytest.raises(CommandFailed, match="blocked"):
        await api_keys.create_personal(api.store, given())
    await api_keys.revoke(api.store, given(id=created["id"]))
    await api.call("PATCH", "/v1/users/1", {"blocked": False})
    assert (await script.call("GET", "/v1/me")).code == "KEY_UNKNOWN", "a key of a blocked person is revoked as well"
    with pytest.raises(NotFound):
        await api_keys.revoke(api.store, given(id=created["id"]))
    browser = await as_person(api, 1)
    _, key_id = await made(api, browser)
    await browser.call("DELETE", f"/v1/me/keys/{key_id}")
    found, _ = await ActionLog(api.store).page("default", ActionFilter(), None, 100)
    of_keys = [one.action for one in found if "/v1/me/keys" in one.action.what]
    assert [(one.via, one.what) for one in of_keys] == [
        *(("console", "DELETE /v1/me/keys/{id}"), ("console", "POST /v1/me/keys")),
        *(("cli", "DELETE /v1/me/keys/{id}"), ("cli", "POST /v1/me/keys")),
    ]
    assert [(one.who, one.filter) for one in of_keys[1:3]] == [("person:1", ""), (of_keys[3].who, "person=1")]
