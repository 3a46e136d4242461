"""Authentication: keys, scopes, tenants, request rates."""

import asyncio
import re
from datetime import timedelta

import pytest

from core.admission.api_keys import SCOPES, ApiKeys
from core.model.delivery import QuotaState
from core.queue import NewTask, Queue
from delivery.http.options import Options
from delivery.http.rate_limit import RateLimiter, add_rate_limit, quota_headers
from delivery.routes import OPEN_ROUTES, ROUTES
from tests.delivery.conftest import Api, delivery_body

PARTS = {"id": "0.42.1763712000000000000", "task_id": "0.1", "kind": "group"}


def address(path: str) -> str:
    """The path of a route with its parts filled."""
    return re.sub(r"\{(\w+)\}", lambda part: PARTS.get(part[1], "x"), path)


async def a_key(api: Api, *scopes: str, tenant: str = "default") -> Api:
    _, secret = await api.services.api_keys.create("test", scopes, tenant)
    return api.as_key(secret)


RULES = [
    ("POST", "/v1/history-keys", "send", "stored"),
    ("POST", "/v1/deliveries", "send", "own"),
    ("POST", "/v1/deliveries/preview", "send", "none"),
    ("POST", "/v1/deliveries/bulk", "send", "own"),
    ("GET", "/v1/deliveries", "read", "none"),
    ("GET", "/v1/deliveries/{id}", "read", "none"),
    ("PATCH", "/v1/deliveries/{id}", "send", "stored"),
    ("DELETE", "/v1/deliveries/{id}", "send", "stored"),
    ("POST", "/v1/deliveries/{id}/retry", "send", "stored"),
    ("GET", "/v1/deliveries/{id}/events", "read", "none"),
    ("GET", "/v1/deliveries/{id}/recipients", "read", "none"),
    ("GET", "/v1/deliveries/{id}/reasons", "read", "none"),
    ("GET", "/v1/deliveries/{id}/recipients.csv", "read", "none"),
    ("GET", "/v1/deliveries/{id}/files/{file}", "read", "none"),
    ("GET", "/v1/deliveries/{id}/answers", "read", "none"),
    ("GET", "/v1/deliveries/{id}/answers.csv", "read", "none"),
    ("POST", "/v1/deliveries/{id}/answers", "send", "stored"),
    ("GET", "/v1/deliveries/{id}/answers/file", "read", "none"),
    ("POST", "/v1/deliveries/{id}/answers:close", "send", "stored"),
    ("POST", "/v1/deliveries/{id}/answers:reopen", "send", "stored"),
    ("GET", "/v1/addressees", "send", "none"),
    ("POST", "/v1/cancellations", "send", "stored"),
    ("GET", "/v1/templates", "send", "none"),
    ("POST", "/v1/templates", "send", "stored"),
    ("DELETE", "/v1/templates/{id}", "send", "stored"),
    ("GET", "/v1/channels", "read", "none"),
    ("GET", "/v1/deliveries/{id}/exchanges", "admin", "none"),
    ("POST", "/v1/deliveries/{id}/answers:remind", "send", "stored"),
    ("GET", "/v1/threads", "read", "none"),
    ("GET", "/v1/threads/{thread}", "read", "none"),
    ("POST", "/v1/threads/{thread}/messages", "send", "stored"),
    ("GET", "/v1/threads/{thread}/messages/{message}/files/{file}", "read", "none"),
    ("POST", "/v1/threads/{thread}:answering", "send", "none"),
    ("POST", "/v1/threads/{thread}:read", "send", "none"),
    ("POST", "/v1/threads/{thread}:mute", "send", "none"),
    ("POST", "/v1/threads/{thread}:hide", "send", "none"),
    ("POST", "/v1/threads/{thread}:report", "send", "none"),
    ("GET", "/v1/series", "send", "none"),
    ("POST", "/v1/series", "send", "stored"),
    ("POST", "/v1/series/preview", "send", "none"),
    ("GET", "/v1/series/{id}", "send", "none"),
    ("PATCH", "/v1/series/{id}", "send", "stored"),
    ("DELETE", "/v1/series/{id}", "send", "stored"),
    ("GET", "/v1/accounts", "operator", "none"),
    ("PATCH", "/v1/accounts/{channel}", "operator", "none"),
    ("POST", "/v1/processes:start", "operator", "none"),
    ("POST", "/v1/processes/{process_id}/requests", "operator", "none"),
    ("GET", "/v1/quota", "read", "none"),
    ("GET", "/v1/costs", "read", "none"),
    ("GET", "/v1/costs.csv", "read", "none"),
    ("POST", "/v1/track", "read", "none"),
    ("POST", "/v1/files", "send", "none"),
    ("GET", "/v1/files/{id}", "send", "none"),
    ("GET", "/v1/files/{id}/table", "send", "none"),
    ("DELETE", "/v1/files/{id}", "send", "stored"),
    ("POST", "/v1/import", "manage", "own"),
    ("POST", "/v1/import/columns", "manage", "none"),
    ("GET", "/v1/import", "manage", "none"),
    ("GET", "/v1/import/sample", "manage", "none"),
    ("GET", "/v1/export/{kind}", "manage", "none"),
    ("POST", "/v1/links", "manage", "stored"),
    ("POST", "/v1/links/{link_id}/confirm", "manage", "stored"),
    ("POST", "/v1/updates", "updates", "stored"),
    ("GET", "/v1/queue", "operator", "none"),
    ("GET", "/v1/overview", "operator", "none"),
    ("GET", "/v1/figures", "operator", "none"),
    ("GET", "/v1/queue/tubes", "operator", "none"),
    ("PATCH", "/v1/queue/tubes/{tube}", "operator", "stored"),
    ("PUT", "/v1/queue/weights/{tenant}", "operator", "stored"),
    ("GET", "/v1/queue/lanes", "operator", "none"),
    ("GET", "/v1/queue/tubes/{tube}/lanes/{lane}", "operator", "none"),
    ("POST", "/v1/queue/tubes/{tube}:pause", "operator", "stored"),
    ("POST", "/v1/queue/tubes/{tube}:resume", "operator", "stored"),
    ("GET", "/v1/queue/dead-letters", "operator", "none"),
    ("POST", "/v1/queue/dead-letters:kick", "operator", "stored"),
    ("POST", "/v1/queue/dead-letters:cancel", "operator", "stored"),
    ("GET", "/v1/audits", "operator", "none"),
    ("POST", "/v1/audits", "operator", "stored"),
    ("POST", "/v1/audits:repair", "operator", "stored"),
    ("GET", "/v1/processes", "operator", "none"),
    ("GET", "/v1/bots", "read", "none"),
    ("GET", "/v1/bots:all", "read", "none"),
    ("POST", "/v1/scenarios:dry-run", "read", "none"),
    ("GET", "/v1/scenarios/{name}", "read", "none"),
    ("GET", "/v1/forms", "read", "none"),
    ("GET", "/v1/forms/{name}", "read", "none"),
    ("GET", "/v1/forms/{name}/answers.csv", "read", "none"),
    ("GET", "/v1/variables", "read", "none"),
    ("GET", "/v1/runs", "read", "none"),
    ("GET", "/v1/runs/{id}", "read", "none"),
    ("POST", "/v1/runs/{id}:drop", "manage", "stored"),
    ("POST", "/v1/runs/{id}:drive", "manage", "stored"),
    ("GET", "/v1/queue/tasks", "admin", "none"),
    ("GET", "/v1/queue/tasks:count", "admin", "none"),
    ("POST", "/v1/queue/tasks:kick", "admin", "stored"),
    ("POST", "/v1/queue/tasks:bury", "admin", "stored"),
    ("POST", "/v1/queue/tasks:cancel", "admin", "stored"),
    ("POST", "/v1/queue/cancellations", "admin", "stored"),
    ("GET", "/v1/queue/tasks/{task_id}", "admin", "none"),
    ("POST", "/v1/queue/tasks/{task_id}:bury", "admin", "stored"),
    ("POST", "/v1/queue/tasks/{task_id}:kick", "admin", "stored"),
    ("POST", "/v1/queue/tasks/{task_id}:cancel", "admin", "stored"),
    ("POST", "/v1/jobs", "manage", "stored"),
    ("GET", "/v1/jobs", "read", "none"),
    ("GET", "/v1/jobs:count", "read", "none"),
    ("POST", "/v1/jobs:pause", "manage", "stored"),
    ("POST", "/v1/jobs:resume", "manage", "stored"),
    ("POST", "/v1/jobs:stop", "manage", "stored"),
    ("POST", "/v1/jobs:signal", "manage", "stored"),
    ("POST", "/v1/jobs:reset", "manage", "stored"),
    ("POST", "/v1/jobs:resolve", "manage", "stored"),
    ("GET", "/v1/jobs/{job_id}", "read", "none"),
    ("PATCH", "/v1/jobs/{job_id}", "manage", "stored"),
    ("POST", "/v1/jobs/{job_id}:signal", "manage", "stored"),
    ("POST", "/v1/jobs/{job_id}:pause", "manage", "stored"),
    ("POST", "/v1/jobs/{job_id}:resume", "manage", "stored"),
    ("POST", "/v1/jobs/{job_id}:stop", "manage", "stored"),
    ("GET", "/v1/jobs/{job_id}/steps", "read", "none"),
    ("POST", "/v1/jobs/{job_id}:reset", "manage", "stored"),
    ("POST", "/v1/jobs/{job_id}/queries/{name}", "read", "none"),
    ("GET", "/v1/jobs/{job_id}/units", "read", "none"),
    ("POST", "/v1/jobs/{job_id}/units:resolve", "manage", "stored"),
    ("POST", "/v1/jobs/{job_id}/units:reset", "manage", "stored"),
    ("GET", "/v1/jobs/{job_id}/log", "read", "none"),
    ("POST", "/v1/sign-in", "manage", "none"),
    ("GET", "/v1/sign-in/users/{user}", "manage", "none"),
    ("DELETE", "/v1/sign-in/users/{user}/{service}", "manage", "stored"),
    ("POST", "/v1/webhooks", "manage", "stored"),
    ("GET", "/v1/webhooks", "manage", "none"),
    ("DELETE", "/v1/webhooks/{id}", "manage", "stored"),
    ("POST", "/v1/webhooks/{id}/test", "manage", "stored"),
    ("GET", "/v1/webhooks/{id}/attempts", "manage", "none"),
    ("POST", "/v1/webhooks/{id}/replay", "manage", "stored"),
    ("POST", "/v1/users", "manage", "stored"),
    ("GET", "/v1/users", "manage", "none"),
    ("GET", "/v1/users/{id}", "manage", "none"),
    ("PATCH", "/v1/users/{id}", "manage", "stored"),
    ("DELETE", "/v1/users/{id}", "manage", "stored"),
    ("POST", "/v1/users/{id}:merge", "manage", "stored"),
    ("GET", "/v1/fields", "manage", "none"),
    ("PUT", "/v1/fields/{name}", "manage", "stored"),
    ("DELETE", "/v1/fields/{name}", "manage", "stored"),
    ("GET", "/v1/syncs", "manage", "none"),
    ("PUT", "/v1/syncs/{source}", "manage", "stored"),
    ("DELETE", "/v1/syncs/{source}", "manage", "stored"),
    ("POST", "/v1/syncs/{source}/runs", "manage", "stored"),
    ("GET", "/v1/users/{id}/groups", "manage", "none"),
    ("GET", "/v1/users/{id}/deliveries", "manage", "none"),
    ("GET", "/v1/users/{id}/export", "admin", "none"),
    ("GET", "/v1/users/{id}/keys", "manage", "none"),
    ("DELETE", "/v1/users/{id}/keys/{key}", "manage", "stored"),
    ("POST", "/v1/contacts", "manage", "stored"),
    ("GET", "/v1/contacts", "manage", "none"),
    ("DELETE", "/v1/contacts/{user}/{channel}/{address}", "manage", "stored"),
    ("POST", "/v1/groups", "manage", "stored"),
    ("GET", "/v1/groups", "manage", "none"),
    ("GET", "/v1/groups/{id}", "manage", "none"),
    ("PATCH", "/v1/groups/{id}", "manage", "stored"),
    ("DELETE", "/v1/groups/{id}", "manage", "stored"),
    ("GET", "/v1/groups/{id}/members", "manage", "none"),
    ("PUT", "/v1/groups/{id}/members/{user}", "manage", "stored"),
    ("DELETE", "/v1/groups/{id}/members/{user}", "manage", "stored"),
    ("POST", "/v1/supergroups", "manage", "stored"),
    ("GET", "/v1/supergroups", "manage", "none"),
    ("GET", "/v1/supergroups/{id}", "manage", "none"),
    ("PATCH", "/v1/supergroups/{id}", "manage", "stored"),
    ("DELETE", "/v1/supergroups/{id}", "manage", "stored"),
    ("PUT", "/v1/supergroups/{id}/groups/{group}", "manage", "stored"),
    ("DELETE", "/v1/supergroups/{id}/groups/{group}", "manage", "stored"),
    ("GET", "/v1/ownerships", "manage", "none"),
    ("PUT", "/v1/ownerships/{user}/{kind}/{id}", "manage", "stored"),
    ("DELETE", "/v1/ownerships/{user}/{kind}/{id}", "manage", "stored"),
    ("POST", "/scim/v2/Users", "scim", "none"),
    ("GET", "/scim/v2/Users", "scim", "none"),
    ("GET", "/scim/v2/Users/{id}", "scim", "none"),
    ("PUT", "/scim/v2/Users/{id}", "scim", "none"),
    ("PATCH", "/scim/v2/Users/{id}", "scim", "none"),
    ("DELETE", "/scim/v2/Users/{id}", "scim", "none"),
    ("POST", "/scim/v2/Groups", "scim", "none"),
    ("GET", "/scim/v2/Groups", "scim", "none"),
    ("GET", "/scim/v2/Groups/{id}", "scim", "none"),
    ("PUT", "/scim/v2/Groups/{id}", "scim", "none"),
    ("PATCH", "/scim/v2/Groups/{id}", "scim", "none"),
    ("DELETE", "/scim/v2/Groups/{id}", "scim", "none"),
    ("GET", "/scim/v2/ServiceProviderConfig", "scim", "none"),
    ("GET", "/scim/v2/ResourceTypes", "scim", "none"),
    ("GET", "/scim/v2/ResourceTypes/{id}", "scim", "none"),
    ("GET", "/scim/v2/Schemas", "scim", "none"),
    ("GET", "/scim/v2/Schemas/{id}", "scim", "none"),
    ("GET", "/v1/me", "", "none"),
    ("DELETE", "/v1/sessions", "", "none"),
    ("GET", "/v1/actions", "admin", "none"),
    ("GET", "/v1/actions.csv", "admin", "none"),
    ("GET", "/v1/live", "", "none"),
    ("GET", "/v1/me/keys", "", "none"),
    ("POST", "/v1/me/keys", "", "none"),
    ("DELETE", "/v1/me/keys/{id}", "", "stored"),
    ("GET", "/v1/api-keys", "admin", "none"),
    ("POST", "/v1/api-keys", "admin", "none"),
    ("DELETE", "/v1/api-keys/{id}", "admin", "stored"),
]


def test_scope_and_repeats_of_every_operation_are_as_listed_by_hand() -> None:
    found = [(route.method, route.path, route.scope, route.repeats.name.lower()) for route in ROUTES]
    assert sorted(found) == sorted(RULES)


QUESTIONS = (
    "/v1/track",
    "/v1/deliveries/preview",
    "/v1/series/preview",
    "/v1/scenarios:dry-run",
    "/v1/jobs/{job_id}/queries/{name}",
)
PERMITTED = {
    "": SCOPES,
    "send": {"send", "admin", "operator"},
    "read": {"read", "admin", "operator"},
    "manage": {"manage", "admin", "operator"},
    "updates": {"updates", "admin", "operator"},
    "scim": {"scim"},
    "admin": {"admin", "operator"},
    "operator": {"operator"},
}


@pytest.mark.parametrize("given", sorted(SCOPES))
async def test_a_scope_permits_exactly_these_operations(api: Api, given: str) -> None:
    key = await a_key(api, given)
    for method, path, scope, _ in (one for one in RULES if not one[1].startswith("/v1/me/keys")):  # test_personal_keys
        response = await key.call(method, address(path))
        assert response.status != 401, (method, path)
        reads = given == "inspect" and scope != "scim" and (method == "GET" or path in QUESTIONS)
        assert (response.status != 403) == (given in PERMITTED[scope] or reads), (method, path)


async def test_every_operation_needs_a_known_key_with_its_scope(api: Api) -> None:
    keys = {scope: await a_key(api, scope) for scope in SCOPES}
    for route in (one for one in ROUTES if one.scope):
        wrong = {"read": "send", "admin": "manage", "operator": "admin"}.get(route.scope, "read")
        for headers in ({"Authorization": ""}, {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer"}):
            response = await api.call(route.method, address(route.path), headers=headers)
            assert (response.status, response.code) == (401, "KEY_MISSING"), route
            assert response.headers["WWW-Authenticate"].startswith("Bearer"), route
        stranger = await api.as_key("ada_nobody").call(route.method, address(route.path))
        assert (stranger.status, stranger.code) == (401, "KEY_UNKNOWN"), route
        other = await keys[wrong].call(route.method, address(route.path))
        assert (other.status, other.code) == (403, "SCOPE_MISSING"), route
        allowed = await keys[route.scope].call(route.method, address(route.path))
        assert allowed.status not in (401, 403), route


def test_only_these_operations_need_no_key() -> None:
    """Invariant: such an operation shows nothing of a tenant, or has a secret of its own."""
    paths = {route.path for route in OPEN_ROUTES}
    of_providers = {
        "/v1/receipts/sms",
        "/v1/receipts/sms/{profile}",
        "/v1/updates/max",
        "/v1/inbound/mail",
        "/v1/inbound/sms",
        "/v1/inbound/telegram",
        "/v1/inbound/vk",
    }
    of_services = {"/v1/sign-in/link/{link}", "/v1/sign-in/callback", "/v1/server-proof", "/a/{token}", "/p/{token}"}
    of_devices = {
        "/p/{token}/devices",
        "/p/device/{token}",
        "/push/worker.js",
        "/push/message",
        "/v1/receipts/web-push",
    }
    of_services.add("/v1/calendar/{secret}")
    assert paths == {
        *of_providers,
        *of_services,
        *of_devices,
        "/v1/sessions",
        "/v1/sessions/codes",
        "/v1/sessions/providers",
        "/v1/sessions/providers/{provider}",
        "/v1/sessions/providers/{provider}/callback",
        "/v1/sessions/providers/{provider}/logout",
        "/v1/sessions/providers/{provider}/sign-out",
        "/livez",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/docs",
        "/",
    }


async def test_a_revoked_key_is_unknown(api: Api) -> None:
    api_keys = api.services.api_keys
    key, secret = await api_keys.create("test", ["read"])
    await api_keys.revoke(key.id)
    assert (await api.as_key(secret).call("GET", "/v1/deliveries")).code == "KEY_UNKNOWN"


async def test_a_revoked_key_ends_its_event_streams(api: Api) -> None:
    """The key is revoked in another process: here only the store knows."""
    made = await api.call("POST", "/v1/deliveries", delivery_body(deliver_at="2030-01-01T00:00:00Z", far=True))
    key, secret = await api.services.api_keys.create("test", ["read"])
    other = {"Authorization": f"Bearer {secret}"}
    kept = {"Authorization": f"Bearer {api.secret}"}
    url = f"{api.url}{made.headers['Location']}/events"
    async with api.session.get(url, headers=other) as stream, api.session.get(url, headers=kept) as untouched:
        assert (stream.status, untouched.status) == (200, 200)
        await ApiKeys(api.store).revoke(key.id)
        await asyncio.wait_for(stream.content.read(), 20)
        assert not untouched.content.at_eof()
    assert (await api.as_key(secret).call("GET", "/v1/deliveries")).code == "KEY_UNKNOWN"


async def test_the_first_key_of_an_earlier_version_gets_the_scopes_that_came_later(api: Api) -> None:
    api_keys = api.services.api_keys
    old, _ = await api_keys.create("first admin key", ["send", "read", "manage", "admin"], secret="ada_old")
    ensured = await api_keys.ensure("ada_old")
    assert ensured
    assert ensured == (await api_keys.find("ada_old"))
    assert ensured.is_operator
    assert [key.id for key in await api_keys.list()].count(old.id) == 1
    assert (await api.as_key("ada_old").call("GET", "/v1/queue")).status == 200


@pytest.fixture
async def tasks(api: Api) -> dict[str, str]:
    """Tenant → the id of its task."""
    queue = Queue(api.store)
    return {tenant: await queue.put("t", NewTask("", tenant, user="u")) for tenant in ("mine", "theirs")}


@pytest.mark.parametrize("query", ["", "?tube=t", "?user=u", "?tenant=mine"])
async def test_an_admin_lists_only_the_tasks_of_its_tenant(api: Api, tasks: dict[str, str], query: str) -> None:
    mine = await a_key(api, "admin", tenant="mine")
    found = (await mine.call("GET", f"/v1/queue/tasks{query}")).json["tasks"]
    assert [task["id"] for task in found] == [tasks["mine"]]


async def test_an_admin_selects_no_tasks_of_another_tenant(api: Api, tasks: dict[str, str]) -> None:
    mine = await a_key(api, "admin", tenant="mine")
    listed = await mine.call("GET", "/v1/queue/tasks?tenant=theirs")
    cancelled = await mine.call("POST", "/v1/queue/cancellations", {"tenant": "theirs"})
    for response in (listed, cancelled, await mine.call("GET", "/v1/queue")):
        assert (response.status, response.code) == (403, "SCOPE_MISSING")
    assert (await mine.call("POST", "/v1/queue/cancellations", {"tube": "t"})).code == "SELECTION_EMPTY"
    assert (await mine.call("POST", "/v1/queue/cancellations", {"user": "u"})).json["cancelled"] == 1
    assert (await Queue(api.store).inspector.peek(tasks["theirs"])).state == "ready"


async def test_inspect_reads_the_tasks_of_all_tenants_and_changes_none(api: Api, tasks: dict[str, str]) -> None:
    """Not even together with admin, whose changes end at its own tenant."""
    path = f"/v1/queue/tasks/{tasks['theirs']}"
    for scopes in (["inspect"], ["inspect", "admin"]):
        mine = await a_key(api, *scopes, tenant="mine")
        assert (await mine.call("GET", path)).json["state"] == "ready"
        assert len((await mine.call("GET", "/v1/queue/tasks?tube=t")).json["tasks"]) == 2
        for verb in (":bury", ":kick", ":cancel"):
            assert (await mine.call("POST", path + verb)).code in ("SCOPE_MISSING", "TASK_NOT_FOUND"), verb
        assert (await mine.call("POST", "/v1/queue/cancellations", {"tenant": "theirs"})).code == "SCOPE_MISSING"
    assert (await Queue(api.store).inspector.peek(tasks["theirs"])).state == "ready"


async def test_a_task_of_another_tenant_does_not_exist_for_an_admin(api: Api, tasks: dict[str, str]) -> None:
    mine, operator = await a_key(api, "admin", tenant="mine"), await a_key(api, "operator", tenant="mine")
    path = f"/v1/queue/tasks/{tasks['theirs']}"
    for method, verb in (("GET", ""), ("POST", ":bury"), ("POST", ":kick"), ("POST", ":cancel")):
        response = await mine.call(method, path + verb)
        assert (response.status, response.code) == (404, "TASK_NOT_FOUND"), verb
    assert (await operator.call("GET", path)).json["state"] == "ready"
    assert (await operator.call("POST", path + ":bury")).json["state"] == "buried"
    assert (await mine.call("POST", f"/v1/queue/tasks/{tasks['mine']}:bury")).json["state"] == "buried"


async def test_deliveries_of_another_tenant_are_not_found(api: Api) -> None:
    theirs = await a_key(api, "send", "read", tenant="theirs")
    made = await api.call("POST", "/v1/deliveries", delivery_body(deliver_at="2030-01-01T00:00:00Z", far=True))
    where, key = made.headers["Location"], made.json["history_key"]
    calls = [
        ("GET", where, None),
        ("GET", f"{where}/events", None),
        ("PATCH", where, {"deliver_at": "2031-01-01T00:00:00Z", "far": True}),
        ("DELETE", where, None),
        ("POST", f"{where}/retry", None),
        ("POST", "/v1/track", {"history_key": key, "timeout": 0}),
    ]
    for method, path, body in calls:
        response = await theirs.call(method, path, body)
        assert (response.status, response.code) == (404, "HISTORY_NOT_FOUND"), (method, path)
    assert (await theirs.call("GET", "/v1/deliveries")).json["deliveries"] == []
    assert (await theirs.call("POST", "/v1/cancellations", {"sender": 42})).json == {"cancelled": 0}
    assert (await api.call("GET", where)).json["state"] == "scheduled"


async def test_a_history_key_of_another_tenant_is_refused(api: Api) -> None:
    theirs = await a_key(api, "send", tenant="theirs")
    key = (await theirs.call("POST", "/v1/history-keys", {"sender": {"id": 42}})).json["history_key"]
    before = await api.keys()
    response = await api.call("POST", "/v1/deliveries", delivery_body(history_key=key))
    assert (response.status, response.code) == (403, "HISTORY_KEY_FOREIGN")
    assert await api.keys() == before


class TestRateLimit:
    @pytest.fixture
    def options(self) -> Options:
        return Options(rate=0.01, burst=3)

    async def test_requests_above_the_rate_are_refused_with_retry_after(self, api: Api) -> None:
        responses = [await api.call("GET", "/v1/deliveries") for _ in range(4)]
        assert [response.status for response in responses] == [200, 200, 200, 429]
        assert responses[0].headers["RateLimit"] == '"key";r=2;t=100'
        refused = responses[3]
        assert refused.code == "RATE_EXCEEDED"
        assert 1 <= int(refused.headers["Retry-After"]) <= 100
        assert refused.headers["RateLimit-Policy"] == '"key";q=3;w=300'
        other = await a_key(api, "read")
        assert (await other.call("GET", "/v1/deliveries")).status == 200


def test_a_token_bucket_refills_with_time_up_to_its_burst() -> None:
    limiter = RateLimiter(rate=10, burst=2)
    assert [limiter.take("a", 0.0), limiter.take("a", 0.0)] == [0.0, 0.0]
    assert limiter.take("a", 0.0) == pytest.approx(0.1)
    assert limiter.take("a", 0.1) == 0.0
    assert [limiter.take("a", 100.0), limiter.take("a", 100.0)] == [0.0, 0.0]
    assert limiter.take("a", 100.0) > 0


def test_a_refused_request_takes_no_token_and_each_key_has_a_bucket_of_its_own() -> None:
    limiter = RateLimiter(rate=1, burst=1)
    assert limiter.take("a", 0.0) == 0.0
    assert [limiter.take("a", at) for at in (0.25, 0.5, 0.75)] == pytest.approx([0.75, 0.5, 0.25])
    assert [limiter.take("b", 0.75), limiter.take("a", 1.0)] == [0.0, 0.0]
    assert limiter.take("b", 1.0) == pytest.approx(0.75)


def test_a_response_has_the_rate_limits_of_the_key_and_of_the_sender() -> None:
    fields = quota_headers(QuotaState(6, 4, timedelta(seconds=9.5), timedelta(days=1)))
    assert fields == {"RateLimit-Policy": '"sender";q=4;w=86400', "RateLimit": '"sender";r=0;t=10'}
    add_rate_limit(fields, RateLimiter(rate=1, burst=3).headers("key"))
    assert fields["RateLimit"] == '"sender";r=0;t=10, "key";r=3;t=0'
    assert fields["RateLimit-Policy"] == '"sender";q=4;w=86400, "key";q=3;w=3'
