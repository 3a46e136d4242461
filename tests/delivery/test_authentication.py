"""Authentication: keys, scopes, tenants, request rates."""

import pytest

from delivery.http.options import Options
from delivery.http.rate_limit import RateLimiter
from delivery.http.route import Route
from delivery.routes import OPEN_ROUTES, ROUTES
from tests.delivery.conftest import Api, delivery_body


def address(route: Route) -> str:
    return route.path.replace("{id}", "0.42.1763712000000000000").replace("{task_id}", "0.1")


async def a_key(api: Api, *scopes: str, tenant: str = "default") -> Api:
    _, secret = await api.services.api_keys.create("test", scopes, tenant)
    return api.as_key(secret)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_every_operation_needs_a_known_key_with_its_scope(api: Api, route: Route) -> None:
    wrong = {"send": "read", "read": "send", "admin": "manage"}[route.scope]
    for headers in ({"Authorization": ""}, {"Authorization": "Basic YTpi"}, {"Authorization": "Bearer"}):
        response = await api.call(route.method, address(route), headers=headers)
        assert (response.status, response.code) == (401, "KEY_MISSING")
        assert response.headers["WWW-Authenticate"].startswith("Bearer")
    stranger = await api.as_key("ada_nobody").call(route.method, address(route))
    assert (stranger.status, stranger.code) == (401, "KEY_UNKNOWN")
    other = await (await a_key(api, wrong)).call(route.method, address(route))
    assert (other.status, other.code) == (403, "SCOPE_MISSING")
    allowed = await (await a_key(api, route.scope)).call(route.method, address(route))
    assert allowed.status not in (401, 403)


def test_only_these_operations_need_no_key() -> None:
    """Invariant: such an operation shows nothing of a tenant, or has a secret of its own."""
    paths = {route.path for route in OPEN_ROUTES}
    assert paths == {"/v1/receipts/sms", "/livez", "/readyz", "/metrics", "/openapi.json", "/docs", "/"}


async def test_a_revoked_key_is_unknown(api: Api) -> None:
    api_keys = api.services.api_keys
    key, secret = await api_keys.create("test", ["read"])
    await api_keys.revoke(key.id)
    assert (await api.as_key(secret).call("GET", "/v1/deliveries")).code == "KEY_UNKNOWN"


@pytest.mark.row("D-27")
async def test_deliveries_of_another_tenant_are_not_found(api: Api) -> None:
    theirs = await a_key(api, "send", "read", tenant="theirs")
    made = await api.call("POST", "/v1/deliveries", delivery_body(deliver_at="2030-01-01T00:00:00Z"))
    where, key = made.headers["Location"], made.json["history_key"]
    calls = [
        ("GET", where, None),
        ("GET", f"{where}/events", None),
        ("PATCH", where, {"deliver_at": "2031-01-01T00:00:00Z"}),
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
