"""The API process is killed, or its answer lost, after the delivery was written; a repeat gets the first answer."""

import asyncio

import pytest
from aiohttp import ClientError

from core.model.states import Status
from tests.crash.api import Api, delivery
from tests.crash.installation import SMS, Installation
from tests.support.waiting import until

TO_ONE = delivery({"sms": SMS.address(1)}, text="exactly once")
WRITTEN = b"exactly once"


def is_written(installation: Installation) -> bool:
    return any(key.startswith("history:") for key in installation.server.all_keys())


async def arrives_once(installation: Installation, api: Api) -> None:
    """The delivery is over, there is no other, and the person has it once."""
    await installation.courier(SMS)
    _, told = await api.ask("GET", "/v1/deliveries")
    (only,) = told["deliveries"]
    await until(lambda: installation.copies(SMS), within=20)
    await until(lambda: is_finished(api, only["id"]), within=20)
    assert installation.copies(SMS) == {SMS.address(1): 1}
    await installation.audit()


async def is_finished(api: Api, delivery_id: str) -> bool:
    _, told = await api.ask("GET", f"/v1/deliveries/{delivery_id}")
    return bool(told["channels"]["sms"].get(Status.SENT) == 1 and told["state"] == "finished")


@pytest.mark.row("D-39")
async def test_the_api_is_killed_after_the_script_and_before_the_answer_and_a_repeat_makes_no_second_delivery(
    installation: Installation,
) -> None:
    wire, settings = await installation.wire_to_server()
    program = installation.start_api(**settings)
    api = await installation.client_of(program)
    wire.keep_answers(since=WRITTEN)
    asking = asyncio.create_task(api.post(TO_ONE, repeat="the first"))
    await until(lambda: is_written(installation), within=20)
    program.kill()
    with pytest.raises(ClientError):
        await asking
    again = await installation.client_of(installation.start_api())
    answers = await asyncio.gather(*(again.post(TO_ONE, repeat="the first") for _ in range(20)))
    assert {status for status, _ in answers} == {202}
    assert len({told["history_key"] for _, told in answers}) == 1
    await arrives_once(installation, again)


@pytest.mark.row("D-39")
async def test_the_answer_is_lost_on_its_way_and_a_repeat_gets_the_first_one(installation: Installation) -> None:
    api = await installation.client_of(installation.start_api())
    wire = await installation.wire(int(api.url.rpartition(":")[2]))
    through = installation.client_at(f"http://127.0.0.1:{wire.port}")
    wire.keep_answers(since=WRITTEN)
    asking = asyncio.create_task(through.post(TO_ONE, repeat="the first"))
    await until(lambda: wire.kept, within=20)
    wire.cut()
    with pytest.raises(ClientError):
        await asking
    status, told = await through.post(TO_ONE, repeat="the first")
    assert status == 202
    assert (await api.post(TO_ONE, repeat="the first"))[1] == told
    await arrives_once(installation, api)


@pytest.mark.row("D-39")
async def test_the_connection_to_the_server_breaks_after_the_script_and_the_caller_does_not_notice(
    installation: Installation,
) -> None:
    """The script is repeated by the process itself; the delivery is the one that the first run has made."""
    wire, settings = await installation.wire_to_server()
    api = await installation.client_of(installation.start_api(**settings))
    wire.keep_answers(since=WRITTEN)
    asking = asyncio.create_task(api.post(TO_ONE))
    await until(lambda: is_written(installation), within=20)
    await until(lambda: wire.kept, within=20)
    wire.cut()
    status, told = await asking
    assert status == 202
    assert told["history_key"] in installation.server.all_keys()
    await arrives_once(installation, api)


@pytest.mark.row("D-39")
async def test_the_connection_breaks_after_an_idempotency_key_was_noted_and_the_first_request_goes_on(
    installation: Installation,
) -> None:
    """Its own mark, found by its own repeat, was once taken for another request under way: 409 for nothing."""
    wire, settings = await installation.wire_to_server()
    api = await installation.client_of(installation.start_api(**settings))
    wire.keep_answers(since=b"fingerprint")
    asking = asyncio.create_task(api.ask("POST", "/v1/cancellations", {"tag": "none"}, repeat="the first"))
    await until(lambda: wire.kept, within=20)
    wire.cut()
    assert await asking == (200, {"cancelled": 0})
