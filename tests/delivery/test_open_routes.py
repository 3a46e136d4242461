"""Operations without an API key: delivery reports with their own secret, health, metrics, pages."""

import re
from contextlib import AsyncExitStack
from urllib.parse import urlencode

import pytest
from aiohttp import ClientSession
from redis.asyncio import Redis

from core.deliveries.delivery_reports import DeliveryReports
from core.deliveries.histories.parcels import Entry
from core.model.history_key import HistoryKey
from core.processes import accept_loss
from delivery.api.pages import content_security_policy
from delivery.app import build
from delivery.http.context import ApiServices
from delivery.http.options import Options
from delivery.http.server import listening
from tests.delivery.conftest import ADMIN, Api, ApiResponse, Couriers, delivery_body
from tests.support.servers import Server
from tests.support.waiting import until

WITHOUT_KEY = {"Authorization": ""}


async def sent_by_sms(api: Api, courier: Couriers) -> tuple[str, str]:
    """A delivery sent by SMS, and the token for its delivery report."""
    await courier("sms")
    body = delivery_body(recipients=[{"id": 1, "contacts": {"sms": "+79990000001"}}], channels=["sms"])
    made = await api.call("POST", "/v1/deliveries", body)
    await api.call("POST", "/v1/track", {"history_key": made.json["id"]})
    key = HistoryKey.parse(made.json["id"])
    return made.headers["Location"], await DeliveryReports(api.store).token(
        key, "sms", 0, Entry(1, 0, 0, 1, "+79990000001")
    )


async def report(api: Api, token: str, status: int, method: str = "GET") -> ApiResponse:
    parameters = {"token": token, "status": str(status), "id": "77", "answer": "id:77 stat:DELIVRD"}
    if method == "POST":
        return await api.call("POST", "/v1/receipts/sms", data=parameters, headers=WITHOUT_KEY)
    return await api.call("GET", f"/v1/receipts/sms?{urlencode(parameters)}", headers=WITHOUT_KEY)


async def status_of(api: Api, where: str) -> str:
    history = await api.call("GET", where)
    return str(history.json["recipients"][0]["outcomes"]["sms"]["status"])


@pytest.mark.parametrize(
    ("bits", "status"),
    [(1, "delivered"), (2, "failed"), (16, "failed"), (8, "sent"), (4, "sent"), (9, "delivered"), (12, "sent")],
)
async def test_a_delivery_report_changes_the_history(api: Api, courier: Couriers, bits: int, status: str) -> None:
    where, token = await sent_by_sms(api, courier)
    response = await report(api, token, bits)
    assert (response.status, response.json) == (200, {"changed": status != "sent"})
    assert await status_of(api, where) == status


async def test_delivery_reports_may_be_repeated_and_reordered_by_get_and_post(api: Api, courier: Couriers) -> None:
    where, token = await sent_by_sms(api, courier)
    result = [(await report(api, token, bits, method)).json["changed"] for bits, method in REPORTS]
    assert result == [False, True, False, False, False]
    assert await status_of(api, where) == "delivered"


REPORTS = [(8, "GET"), (1, "POST"), (1, "GET"), (2, "POST"), (4, "GET")]


async def test_a_delivery_report_without_a_valid_token_changes_nothing(api: Api, courier: Couriers) -> None:
    where, token = await sent_by_sms(api, courier)
    for wrong in (token[:-1] + ("0" if token[-1] != "0" else "1"), "x", "a.b", "я.я"):
        response = await report(api, wrong, 1)
        assert (response.status, response.code) == (403, "RECEIPT_SECRET_WRONG"), wrong
    assert (await api.call("GET", "/v1/receipts/sms?status=1", headers=WITHOUT_KEY)).code == "REQUIRED"
    assert (await report(api, token, 0)).code == "REPORT_MALFORMED"
    assert (await report(api, token, 32)).code == "REPORT_MALFORMED"
    assert await status_of(api, where) == "sent"


async def test_the_process_is_alive_without_the_store_and_ready_with_it(api: Api, server: Server) -> None:
    assert (await api.call("GET", "/livez", headers=WITHOUT_KEY)).json == {"status": "ok"}
    assert (await api.call("GET", "/readyz", headers=WITHOUT_KEY)).status == 200
    server.kill()
    assert (await api.call("GET", "/livez", headers=WITHOUT_KEY)).status == 200
    away = await api.call("GET", "/readyz", headers=WITHOUT_KEY)
    assert (away.status, away.code, away.headers["Retry-After"]) == (503, "STORE_UNAVAILABLE", "1")
    server.start()

    async def is_ready() -> bool:
        return (await api.call("GET", "/readyz", headers=WITHOUT_KEY)).status == 200

    await until(is_ready)


async def test_readiness_reports_notifications_that_were_lost_and_those_it_may_not_set(
    api: Api, server: Server, client: Redis
) -> None:
    await client.config_set("notify-keyspace-events", "")
    found = (await api.call("GET", "/readyz", headers=WITHOUT_KEY)).json
    assert found == {"status": "ok", "changed": "notify-keyspace-events was empty and was set to Kgx"}
    assert (await api.call("GET", "/readyz", headers=WITHOUT_KEY)).json == {"status": "ok"}
    await client.config_set("notify-keyspace-events", "")
    await client.execute_command("ACL", "SETUSER", "default", "-config|set")  # type: ignore[no-untyped-call]
    try:
        found = (await api.call("GET", "/readyz", headers=WITHOUT_KEY)).json
        assert found["status"] == "degraded"
        assert "CONFIG SET notify-keyspace-events Kgx" in found["missing"]
    finally:
        await client.execute_command("ACL", "SETUSER", "default", "+@all")  # type: ignore[no-untyped-call]


async def test_a_server_whose_store_has_lost_its_data_is_not_ready_until_it_begins_anew(api: Api) -> None:
    await api.store.command("FLUSHALL")
    lost = await api.call("GET", "/readyz", headers=WITHOUT_KEY)
    assert (lost.status, lost.code) == (503, "STORE_DATA_LOST")
    mark = api.services.mark
    loss = await mark.find_loss()
    assert loss is not None
    await mark.note(loss)
    await mark.begin()
    found = (await api.call("GET", "/readyz", headers=WITHOUT_KEY)).json
    assert (found["status"], "the data of the store are gone" in found["lost"]) == ("degraded", True)
    await accept_loss(api.store)
    assert (await api.call("GET", "/readyz", headers=WITHOUT_KEY)).json == {"status": "ok"}


SAMPLE = re.compile(r'[a-z_]+(\{[a-z]+="[^"\\]*"(,[a-z]+="[^"\\]*")*\})? -?[0-9.]+(e[+-][0-9]+)?')


async def test_metrics_are_prometheus_text_without_ids(api: Api) -> None:
    made = await api.call("POST", "/v1/deliveries", delivery_body())
    await api.call("GET", made.headers["Location"])
    await api.call("GET", "/v1/deliveries/nonsense")
    await api.call("PROPFIND", '/"quoted"')
    response = await api.call("GET", "/metrics")
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    lines = response.body.decode().splitlines()
    assert all(line.startswith(("# HELP ", "# TYPE ")) or SAMPLE.fullmatch(line) for line in lines)
    assert 'ada_http_requests_total{method="POST",route="/v1/deliveries",status="202"} 1.0' in lines
    assert 'ada_http_requests_total{method="GET",route="/v1/deliveries/{id}",status="404"} 1.0' in lines
    assert "ada_deliveries_accepted_total 1.0" in lines
    assert 'ada_http_request_duration_seconds_count{route="/v1/deliveries/{id}"} 2.0' in lines
    assert made.json["id"] not in response.body.decode()


async def test_unusual_methods_share_one_series(api: Api) -> None:
    for method in ("LOCK", "PURGE", "MKCOL"):
        await api.call(method, "/nowhere")
    figures = (await api.call("GET", "/metrics")).body.decode()
    assert 'ada_http_requests_total{method="other",route="/{rest}",status="404"} 3.0' in figures


@pytest.mark.parametrize("metrics_key", ["", "of-prometheus"])
async def test_metrics_need_the_key_of_prometheus_or_that_of_an_operator(
    services: ApiServices, metrics_key: str
) -> None:
    _, of_tenant = await services.api_keys.create("test", ["admin"])
    wanted = {ADMIN: 200, "of-prometheus": 200 if metrics_key else 401, "wrong": 401, of_tenant: 403}
    async with AsyncExitStack() as stack:
        app = build(services, Options(metrics_key=metrics_key))
        host, port = await stack.enter_async_context(listening(app, "127.0.0.1", 0))
        session = await stack.enter_async_context(ClientSession(f"http://{host}:{port}"))
        answers = {key: await session.get("/metrics", headers={"Authorization": f"Bearer {key}"}) for key in wanted}
        assert {key: answer.status for key, answer in answers.items()} == wanted
        without = await session.get("/metrics")
        assert (without.status, b"ada_http" in await without.read()) == (401, False)


async def test_the_page_about_the_api_loads_nothing_from_other_hosts(api: Api) -> None:
    response = await api.call("GET", "/docs", headers=WITHOUT_KEY)
    page = response.body.decode()
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert not re.search(r"https?://|//cdn|@import|url\(", page)
    allowed = response.headers["Content-Security-Policy"]
    assert allowed == content_security_policy(page)
    assert "default-src 'none'" in allowed
    assert page.count("<script>") == allowed.split("script-src")[1].split(";")[0].count("'sha256-") == 1
    assert " onclick=" not in page
    assert " style=" not in page
