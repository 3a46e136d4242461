"""The server is killed, flushed of its scripts or full; what was accepted arrives, once."""

import pytest

from core.words import Status
from tests.crash.api import delivery
from tests.crash.house import SMS, House, person

FULL = "STORE_FULL"


@pytest.mark.row("D-27")
async def test_a_full_server_refuses_new_deliveries_clearly_and_drains_the_accepted_ones(own_house: House) -> None:
    house = own_house
    api = await house.client_of(house.start_api())
    courier = await house.courier(SMS)
    courier.kill()
    accepted = [await house.deliver(person(number, SMS)) for number in range(20)]
    await house.core.redis.config_set("maxmemory", 1)  # what is used already is more than that
    before = house.server.all_keys()
    for repeat in ("", "once"):
        status, told = await api.post(delivery({"sms": SMS.address(99)}), repeat)
        assert (status, told["code"]) == (503, FULL)
    lines = await api.post_lines([delivery({"sms": SMS.address(99)})] * 2)
    assert [(line["line"], line["status"], line["code"]) for line in lines] == [(1, 503, FULL), (2, 503, FULL)]
    status, told = await api.ask("POST", "/v1/cancellations", {"tag": "none"}, repeat="twice")
    assert (status, told["code"]) == (503, FULL)
    assert house.server.all_keys() == before
    assert (await api.ask("GET", "/v1/deliveries"))[0] == 200
    await house.courier(SMS)
    for one in accepted:
        assert await house.finished(one) == {("sms", Status.SENT): 1}
    assert set(house.copies(SMS).values()) == {1}
    await house.audit()
    await house.core.redis.config_set("maxmemory", 0)
    assert (await api.post(delivery({"sms": SMS.address(99)}), "once"))[0] == 202
