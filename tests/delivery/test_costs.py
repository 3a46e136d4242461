"""The costs of a tenant over HTTP: who sees which, in pages, as a table for people and for programs."""

from datetime import UTC, datetime
from urllib.parse import unquote

import pytest

from cli.commands.installation.reports import describe_costs
from tests.delivery.conftest import Api, Couriers, delivery_body
from tests.delivery.test_authentication import a_key
from tests.delivery.test_deliveries import finished
from tests.delivery.test_people_signed_in import as_person, people
from tests.support.servers import several_shards
from tests.support.stack import PaidCourier

__all__ = ["people", "several_shards"]

LONG = "Завтра собрание в восемь часов. " * 3
"""96 letters of Russian: two parts."""


@pytest.fixture
async def month(api: Api, people: None, courier: Couriers) -> str:
    """Return the month in which two people and a program have sent messages."""
    await courier("sms", kind=PaidCourier)
    await courier("telegram")
    for sender, text in ((1, LONG), (1, "Short"), (2, LONG), ("robot", LONG)):
        body = delivery_body(sender={"id": sender}, text=text, channels=["sms", "telegram"])
        made = await api.call("POST", "/v1/deliveries", body)
        await finished(api, made.headers["Location"])
    return f"{datetime.now(UTC):%Y-%m}"


async def test_costs_are_listed_by_month_channel_and_sender_in_pages_with_totals(api: Api, month: str) -> None:
    first = (await api.call("GET", "/v1/costs?limit=4")).json
    assert first["totals"] == [
        {"month": month, "channel": "sms", "messages": 4, "parts": 7, "sums": ["29.40 ₽"], "unpriced": 0},
        {"month": month, "channel": "telegram", "messages": 4, "parts": 0, "sums": [], "unpriced": 0},
    ]
    rest = (await api.call("GET", f"/v1/costs?cursor={first['next']}")).json
    found = [(one["channel"], one["sender"], one["name"], one["parts"]) for one in first["costs"] + rest["costs"]]
    telegram = [("telegram", "1", "P1", 0), ("telegram", "2", "P2", 0), ("telegram", "robot", None, 0)]
    assert found == [("sms", "1", "P1", 3), ("sms", "2", "P2", 2), ("sms", "robot", None, 2), *telegram]
    assert rest["next"] is None
    assert (await api.call("GET", "/v1/costs?from=2001-01&until=2001-02")).json["costs"] == []
    for query in ("from=2026-02&until=2026-01", "from=2020-01&until=2026-01"):
        assert (await api.call("GET", f"/v1/costs?{query}")).json["errors"][0]["code"] == "TIME_OUT_OF_RANGE"


@pytest.mark.usefixtures("month")
async def test_an_administrator_sees_the_costs_of_its_tenant_others_their_own_and_other_tenants_none(api: Api) -> None:
    senders = {}
    for person in (1, 3, 4):
        browser = await as_person(api, person)
        senders[person] = {one["sender"] for one in (await browser.call("GET", "/v1/costs")).json["costs"]}
        lines = (await browser.call("GET", "/v1/costs.csv")).body.decode().splitlines()[1:]
        assert {line.split(",")[2] for line in lines} == senders[person]
    assert senders == {1: {"1"}, 3: {"1", "2", "robot"}, 4: set()}
    theirs = await a_key(api, "admin", tenant="theirs")
    assert (await theirs.call("GET", "/v1/costs")).json == {"totals": [], "costs": [], "next": None}


async def test_the_table_of_costs_is_for_people_and_with_raw_for_programs(api: Api, month: str) -> None:
    made = await api.call("POST", "/v1/deliveries", delivery_body(sender={"id": "notices"}, channels=["sms"]))
    await finished(api, made.headers["Location"])
    table = await api.call("GET", f"/v1/costs.csv?excel&language=ru&from={month}&until={month}")
    header, first, *rest = table.body.decode("utf-8-sig").splitlines()
    assert header == "Месяц;Канал;Номер;Отправитель;Сообщений;Частей SMS;Сумма;Частей без цены"
    assert first == f"{month};SMS;1;P1;2;3;12,60 ₽;0"
    assert f"{month};SMS;notices;Уведомления;1;1;4,20 ₽;0" in rest
    assert unquote(table.headers["Content-Disposition"]).endswith("Расходы.csv")
    raw = (await api.call("GET", "/v1/costs.csv?excel&language=ru&format=raw")).body.decode().splitlines()
    assert raw[:2] == ["month,channel,sender,name,messages,parts,sum,unpriced", f"{month},sms,1,P1,2,3,12.60 ₽,0"]


@pytest.mark.usefixtures("month")
async def test_the_command_prints_the_months_in_80_columns(api: Api, month: str) -> None:
    found = (await api.call("GET", "/v1/costs")).json
    lines = [*describe_costs(found["totals"]), *describe_costs(found["costs"])]
    assert lines[1].split() == [month, "sms", "all", "4", "7", "29.40", "₽"]
    assert max(map(len, lines)) <= 80
