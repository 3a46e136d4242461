"""API keys over HTTP: a key gives and takes only rights that it has."""

from typing import Any

import pytest

from tests.delivery.conftest import Api
from tests.delivery.test_authentication import a_key
from tests.delivery.test_sessions import Browser, sign_in


async def test_a_created_key_works_is_listed_without_its_secret_and_is_revoked_with_its_sessions(api: Api) -> None:
    made = await api.call("POST", "/v1/api-keys", {"name": "office", "scopes": ["read"]})
    secret, key_id = made.json["secret"], made.json["key"]["id"]
    assert (made.status, made.json["key"]["used_at"]) == (201, None)
    assert (await api.as_key(secret).call("GET", "/v1/deliveries")).status == 200
    listed = await api.call("GET", "/v1/api-keys")
    (mine,) = [one for one in listed.json["api_keys"] if one["id"] == key_id]
    assert (mine["name"], mine["scopes"], mine["tenant"]) == ("office", ["read"], "default")
    assert mine["used_at"]
    assert secret not in listed.body.decode()
    browser = Browser(api, await sign_in(api, {"key": secret}))
    assert (await api.call("DELETE", f"/v1/api-keys/{key_id}")).status == 204
    assert (await api.as_key(secret).call("GET", "/v1/deliveries")).code == "KEY_UNKNOWN"
    assert await browser.is_signed_out()
    assert (await api.call("DELETE", f"/v1/api-keys/{key_id}")).code == "KEY_NOT_FOUND"


async def test_an_admin_reaches_only_keys_of_its_tenant_with_no_more_scopes(api: Api) -> None:
    admin = await a_key(api, "admin", tenant="mine")
    await a_key(api, "operator", tenant="mine")
    await a_key(api, "read", tenant="theirs")
    keys = {
        key.tenant + min(key.scopes): key.id for key in await api.services.api_keys.list() if key.tenant != "default"
    }
    listed = (await admin.call("GET", "/v1/api-keys")).json["api_keys"]
    assert {one["tenant"] for one in listed} == {"mine"}
    wide = await admin.call("DELETE", f"/v1/api-keys/{keys['mineoperator']}")
    assert (wide.status, wide.code) == (403, "SCOPE_MISSING")
    assert (await admin.call("DELETE", f"/v1/api-keys/{keys['theirsread']}")).code == "KEY_NOT_FOUND"
    for scope in ("operator", "inspect"):
        refused = await admin.call("POST", "/v1/api-keys", {"name": "x", "scopes": ["read", scope]})
        assert (refused.status, refused.code, refused.json["errors"][0]["path"]) == (403, "SCOPE_MISSING", "scopes.1")
    other = await admin.call("POST", "/v1/api-keys", {"name": "x", "scopes": ["read"], "tenant": "theirs"})
    assert (other.status, other.code) == (403, "SCOPE_MISSING")
    assert (await admin.call("POST", "/v1/api-keys", {"name": "x", "scopes": ["admin"]})).json["key"][
        "tenant"
    ] == "mine"
    assert len(await api.services.api_keys.list()) == 5


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"scopes": ["read"]}, "REQUIRED"),
        ({"name": "x", "scopes": []}, "TOO_SHORT"),
        ({"name": "x", "scopes": ["root"]}, "WRONG_VALUE"),
        ({"name": " ", "scopes": ["read"]}, "KEY_NAME_MALFORMED"),
        ({"name": "x", "scopes": ["read"], "tenant": "a b"}, "TENANT_MALFORMED"),
    ],
    ids=str,
)
async def test_a_malformed_key_is_refused(api: Api, body: dict[str, Any], code: str) -> None:
    response = await api.call("POST", "/v1/api-keys", body)
    assert (response.status, response.code) == (400, code)
