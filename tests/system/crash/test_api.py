"""After the delivery is written, the API process is killed or its response is lost. A retry gets the first response."""

import asyncio
from io import BytesIO

import pytest
from aiohttp import ClientError

from core.model.states import Status
from core.uploads import MiB, Uploads
from tests.support.waiting import until
from tests.system.crash.api_client import ApiClient, delivery
from tests.system.crash.installation import SMS, Installation

TO_ONE = delivery({"sms": SMS.address(1)}, text="exactly once")
WRITTEN = b"exactly once"


def is_written(installation: Installation) -> bool:
    return any(key.startswith("history:") for key in installation.server.all_keys())


async def test_of_an_upload_whose_api_is_killed_half_way_nothing_is_there_and_a_retry_stores_it(
    installation: Installation,
) -> None:
    content = bytes(MiB) + b"the last part"
    link, settings = await installation.link_to_server()
    process = installation.start_api(**settings)
    api = await installation.client_of(process)
    link.block_requests(trigger=content[-13:])
    request = asyncio.create_task(api.upload("report.pdf", content))
    await until(lambda: link.blocked)
    process.kill()
    with pytest.raises(ClientError):
        await request
    again = await installation.client_of(installation.start_api())
    uploads = Uploads(installation.core.store)
    (half,) = (key.rpartition(":")[2] for key in installation.server.all_keys() if key.startswith("uploads:{0}:file:"))
    assert await uploads.keep("default", [half]) == [None]
    assert (await again.request("GET", f"/v1/files/{half}"))[0] == 404
    status, made = await again.upload("report.pdf", content)
    assert (status, made["id"], made["bytes"]) == (201, half, len(content))
    assert await uploads.load("default", half, file := BytesIO())
    assert file.getvalue() == content


async def assert_delivered_once(installation: Installation, api: ApiClient) -> None:
    """The delivery is finished, there is no other, and the recipient has received it once."""
    await installation.courier(SMS)
    _, page = await api.request("GET", "/v1/deliveries")
    (only,) = page["deliveries"]
    await until(lambda: installation.copies(SMS))
    await until(lambda: is_finished(api, only["id"]))
    assert installation.copies(SMS) == {SMS.address(1): 1}
    await installation.audit()


async def is_finished(api: ApiClient, delivery_id: str) -> bool:
    _, history = await api.request("GET", f"/v1/deliveries/{delivery_id}")
    return bool(history["channels"]["sms"].get(Status.SENT) == 1 and history["state"] == "finished")


async def test_after_the_api_is_killed_before_its_response_a_retry_makes_no_second_delivery(
    installation: Installation,
) -> None:
    link, settings = await installation.link_to_server()
    process = installation.start_api(**settings)
    api = await installation.client_of(process)
    link.block_replies(trigger=WRITTEN)
    request = asyncio.create_task(api.post(TO_ONE, idempotency_key="the first"))
    await until(lambda: is_written(installation))
    process.kill()
    with pytest.raises(ClientError):
        await request
    again = await installation.client_of(installation.start_api())
    responses = await asyncio.gather(*(again.post(TO_ONE, idempotency_key="the first") for _ in range(20)))
    assert {status for status, _ in responses} == {202}
    assert len({body["history_key"] for _, body in responses}) == 1
    await assert_delivered_once(installation, again)


async def test_after_a_lost_response_a_retry_gets_the_first_response(installation: Installation) -> None:
    api = await installation.client_of(installation.start_api())
    link = await installation.link(int(api.url.rpartition(":")[2]))
    through = installation.client_at(f"http://127.0.0.1:{link.port}")
    link.block_replies(trigger=WRITTEN)
    request = asyncio.create_task(through.post(TO_ONE, idempotency_key="the first"))
    await until(lambda: link.blocked)
    link.cut()
    with pytest.raises(ClientError):
        await request
    status, response = await through.post(TO_ONE, idempotency_key="the first")
    assert status == 202
    assert (await api.post(TO_ONE, idempotency_key="the first"))[1] == response
    await assert_delivered_once(installation, api)


async def test_a_broken_connection_to_the_server_after_the_script_is_hidden_from_the_caller(
    installation: Installation,
) -> None:
    """The API process repeats the script, which returns the delivery that its first run has created."""
    link, settings = await installation.link_to_server()
    api = await installation.client_of(installation.start_api(**settings))
    link.block_replies(trigger=WRITTEN)
    request = asyncio.create_task(api.post(TO_ONE))
    await until(lambda: is_written(installation))
    await until(lambda: link.blocked)
    link.cut()
    status, response = await request
    assert status == 202
    assert response["history_key"] in installation.server.all_keys()
    await assert_delivered_once(installation, api)


async def test_a_broken_connection_after_the_idempotency_key_was_stored_does_not_refuse_the_first_request(
    installation: Installation,
) -> None:
    """Regression: the repeated command found its own entry, took it for another request under way, and returned 409."""
    link, settings = await installation.link_to_server()
    api = await installation.client_of(installation.start_api(**settings))
    link.block_replies(trigger=b"fingerprint")
    request = asyncio.create_task(
        api.request("POST", "/v1/cancellations", {"tag": "none"}, idempotency_key="the first")
    )
    await until(lambda: link.blocked)
    link.cut()
    assert await request == (200, {"cancelled": 0})
