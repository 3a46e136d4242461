"""What the providers of SMS profiles report, from the courier and the simulated provider to the history."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from couriers.sending.runtime import Runtime
from couriers.sending.services import CourierOptions
from couriers.sms import courier as sms
from couriers.sms.profile import load_profile, own_profiles
from delivery.http.options import Inbound, Options
from sandbox.magic_recipients import MAGIC_RECIPIENTS
from sandbox.sms.providers import PASSWORD, USERNAME, SmsProvidersServer
from sandbox.state import SandboxState
from tests.delivery.conftest import Api
from tests.support.serving import serving
from tests.support.stack import FLOOR
from tests.support.waiting import until

SECRET = "a secret of the gateway"
FAILED = next(address for address, fault in MAGIC_RECIPIENTS["sms"].items() if fault.name == "report_failed")


@pytest.fixture(params=own_profiles())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def options(name: str) -> Options:
    return Options(inbound=Inbound({"sms": SECRET}, profiles={"sms": name}))


@pytest.fixture
async def gateways() -> AsyncIterator[SmsProvidersServer]:
    async with serving(SmsProvidersServer(SandboxState())) as opened:
        yield opened


@pytest.fixture
async def courier(api: Api, name: str, gateways: SmsProvidersServer) -> AsyncIterator[None]:
    """A courier with the profile; at a provider with one address for all reports it is set in the account."""
    settings = sms.Settings(gateways.url, USERNAME, PASSWORD, "Ada", profile=name)
    opened = await sms.open(settings, Path())
    gateways.report_urls[name] = f"{api.url}/v1/receipts/sms/{name}?{urlencode({'secret': SECRET})}"
    options = CourierOptions(max_sleep=FLOOR, report_url=f"{api.url}/v1/receipts/sms")
    runtime = Runtime(api.store, "sms", options)
    await runtime.add(opened)
    running = asyncio.create_task(runtime.run())
    yield
    runtime.stop()
    await running


async def status_of(api: Api, key: str) -> str:
    history = (await api.call("GET", f"/v1/deliveries/{key}")).json
    return str(history["recipients"][0]["outcomes"]["sms"]["status"])


@pytest.mark.usefixtures("courier")
@pytest.mark.parametrize(("address", "status"), [("+79991112233", "delivered"), (FAILED, "failed")])
async def test_a_report_of_each_provider_reaches_the_history(
    api: Api, gateways: SmsProvidersServer, name: str, address: str, status: str
) -> None:
    recipients = [{"id": 1, "contacts": {"sms": address}}]
    body = {
        "sender": {"id": 42},
        "text": "Пары не будет",
        "recipients": recipients,
        "channels": ["sms"],
        "urgent": True,
    }
    accepted = (await api.call("POST", "/v1/deliveries", body)).json
    assert await until(lambda: gateways.reported and gateways.reported[-1][0] == 200)
    assert await status_of(api, accepted["id"]) == status
    expected = load_profile(name).reports
    assert expected is not None
    assert gateways.reported[-1][1] == (expected.reply or "ok")


async def test_a_report_without_the_secret_or_of_another_profile_is_refused(api: Api, name: str) -> None:
    reports = load_profile(name).reports
    assert reports is not None
    is_by_id = reports.by == "id"
    wrong = "?secret=wrong" if is_by_id else "?token=wrong.wrong"
    state = next(iter(reports.states))
    fields = {"data[0]": f"sms_status\n5\n{state}"} if reports.records else {reports.id: "5", reports.state: state}
    answer = await api.call("POST", f"/v1/receipts/sms/{name}{wrong}", data=fields, headers={"Authorization": ""})
    assert answer.code == ("INBOUND_SECRET_WRONG" if is_by_id else "RECEIPT_SECRET_WRONG")
    if is_by_id:
        right = f"/v1/receipts/sms/{name}?{urlencode({'secret': SECRET})}"
        assert (await api.call("POST", right, data=fields, headers={"Authorization": ""})).code == "REFERENCE_UNKNOWN"
    assert (await api.call("POST", "/v1/receipts/sms/another", data=fields)).code == "PROFILE_NOT_SET_UP"
