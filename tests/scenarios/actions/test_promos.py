"""Promo codes."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec import structs

from core.errors import Conflict
from core.model.clock import to_ms
from core.redis.store import Store
from scenarios.actions.promo_codes import PromoManagementAttributes
from scenarios.stores.promo import DIGITS, LETTERS, Promo, Promos
from tests.sandbox.bot_api_clients import ANNA, BORIS
from tests.scenarios.actions.conftest import IN_GROUP, PRIVATE, TENANT, Bench

pytestmark = pytest.mark.parametrize("shards", [16])

CREATE = {"type": "create_promo", "promo_name": "autumn"}
CHECK = {"type": "check_promo"}


async def code(bench: Bench, run: str = "1", **fields: Any) -> str:
    return str((await bench.results({**CREATE, **fields}, PRIVATE, run=run))["promo_code"])


async def test_with_a_salt_the_same_fields_always_give_the_same_code(bench: Bench) -> None:
    first = await code(bench, "a", salt="2026")
    assert await code(bench, "b", salt="2026") == first
    others = [
        await code(bench, "c", salt="2027"),
        await code(bench, "d", salt="2026", promo_name="winter"),
        await code(bench, "e", salt="2026", user_id=BORIS),
        await code(bench, "f", salt="2026", user_id="any"),
    ]
    assert len({first, *others}) == 5
    assert all(len(one) == 8 and one.isalnum() and one == one.upper() for one in (first, *others))
    assert len(await code(bench, "g", salt="2026", length=12)) == 12


async def test_without_a_salt_each_step_gives_another_code_and_its_repeat_the_same(bench: Bench) -> None:
    first = await code(bench, "a")
    assert await code(bench, "a") == first
    assert await code(bench, "b") != first


async def test_a_code_is_of_the_events_person_unless_it_is_for_everybody(bench: Bench) -> None:
    own, everybody = await code(bench, "a"), await code(bench, "b", user_id="any")
    assert (await bench.results({**CHECK, "promo_code": own.lower()}, PRIVATE))["promo_code"] == own
    assert "belongs to another person" in await bench.error({**CHECK, "promo_code": own}, IN_GROUP)
    assert (await bench.results({**CHECK, "promo_code": everybody}, IN_GROUP))["promo_available"] is True
    for number, empty in enumerate(["", None, "Null"]):
        given = await code(bench, f"c{number}", target_user_id=empty)
        assert await bench.results({**CHECK, "promo_code": given}, IN_GROUP)


async def test_a_code_is_valid_from_its_beginning_to_its_end(bench: Bench) -> None:
    today = datetime.now(bench.services.timezone).date()
    yesterday, tomorrow, later = (str(today + timedelta(days=days)) for days in (-1, 1, 2))
    over = await code(bench, "a", started_at="2020-01-01", expired_at=yesterday)
    assert "has expired" in await bench.error({**CHECK, "promo_code": over}, PRIVATE)
    early = await code(bench, "b", started_at=later)
    assert "is valid from" in await bench.error({**CHECK, "promo_code": early}, PRIVATE)
    last_day = await code(bench, "c", expired_at=tomorrow)
    results = await bench.results({**CHECK, "promo_code": last_day}, PRIVATE)
    assert results["expired_at"].startswith(tomorrow + "T23:59:59")
    brief = await bench.results({**CREATE, "expire": "2h"}, PRIVATE, run="d")
    ends = datetime.fromisoformat(brief["expired_at"]) - datetime.now(bench.services.timezone)
    assert timedelta(hours=1, minutes=59) < ends < timedelta(hours=2, seconds=1)


async def test_the_code_to_check_is_what_the_person_wrote_if_no_action_gives_it(bench: Bench) -> None:
    mine = await code(bench)
    await bench.results(CHECK, {**PRIVATE, "event_text": f" {mine.lower()} "})
    await bench.results(CHECK, {**PRIVATE, "event_text": "привет"}, results={"promo_code": mine})
    assert "no such promo code" in await bench.error(CHECK, {**PRIVATE, "event_text": "привет"})
    assert "not of winter" in await bench.error({**CHECK, "promo_code": mine, "promo_name": "winter"}, PRIVATE)


async def test_an_author_may_choose_the_code_once(bench: Bench) -> None:
    assert await code(bench, "a", promo_code="Осень-26") == "Осень-26"
    assert await code(bench, "b", promo_code="осень-26") == "Осень-26"
    other = {**CREATE, "promo_code": "ОСЕНЬ-26", "promo_name": "other"}
    assert "belongs to another promo" in await bench.error(other, PRIVATE, run="c")


async def test_a_second_code_of_a_chain_is_not_the_first_one_again(bench: Bench) -> None:
    first = await bench.results({**CREATE, "expire": "1h", "target_user_id": BORIS}, PRIVATE, run="a")
    second = await bench.results({**CREATE, "promo_name": "winter"}, PRIVATE, run="b", results=first)
    assert second["promo_code"] != first["promo_code"]
    assert "expired_at" not in second
    assert (second["promo_name"], second["target_user_id"]) == ("winter", str(ANNA))


async def test_codes_are_listed_by_name_and_person_newest_first(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scenarios.stores.promo._PAGE", 1)
    first = await code(bench, "a")
    second = await code(bench, "b", user_id="any", promo_name="<winter>")
    third = await code(bench, "c", user_id=BORIS)

    async def listed(**fields: object) -> list[str]:
        text = (await bench.results({"type": "promo_management", **fields}, PRIVATE))["text"]
        return [line.split("</code>")[0].removeprefix("<code>") for line in text.split("\n")]

    assert await listed() == [third, second, first]
    assert await listed(promo_name="autumn") == [third, first]
    assert await listed(user_id=str(ANNA)) == [first]
    assert await listed(limit=1) == [third, "…"]
    assert await listed(limit=3) == [third, second, first]
    assert await listed(promo_name="none") == ["—"]
    assert await listed(operation="details", promo_code=second) == [second]
    assert await listed(name_pattern="WIN") == [second]
    assert await listed(promo_code=first.lower()) == [first]
    number = (await bench.results({**CHECK, "promo_code": second}, PRIVATE))["promo_id"]
    assert await listed(operation="details", promo_id=number) == [second]
    assert await listed(operation="details", event_text=f" {number} ") == [second]
    text = (await bench.results({"type": "promo_management", "promo_name": "<winter>"}, PRIVATE))["response_text"]
    assert "&lt;winter&gt;" in text
    assert "no such promo code" in await bench.error(
        {"type": "promo_management", "operation": "details", "promo_code": "x"}, PRIVATE
    )


MAKING = [
    ({"permanent": True}, {"started_at": "2000-01-01T03:00:00+03:00", "expired_at": "3000-01-01T02:59:59+03:00"}),
    ({"permanent": True, "expire": "1h"}, {"permanent": True}),
    ({}, {"promo_name": "autumn", "target_user_id": str(ANNA), "permanent": False}),
    ({"target_user_id": "Any"}, {"target_user_id": None}),
]


@pytest.mark.parametrize(("fields", "wanted"), MAKING)
async def test_a_made_code_returns_all_about_it_and_the_check_returns_the_same(
    bench: Bench, fields: dict[str, Any], wanted: dict[str, Any]
) -> None:
    made = await bench.results({**CREATE, **fields}, PRIVATE)
    assert wanted.items() <= made.items()
    checked = await bench.results({**CHECK, "promo_code": made["promo_code"]}, PRIVATE)
    data = {**made, "user_id": made["target_user_id"]}
    assert checked == {**made, "promo_available": True, "promo_data": data}


async def test_a_refused_code_has_its_reason_as_a_result(bench: Bench) -> None:
    ending = await bench.play({**CHECK, "promo_code": "nothing"}, PRIVATE)
    reason = "there is no such promo code"
    assert (str(ending.error), ending.returned.results) == (reason, {"promo_available": False, "reason": reason})


@pytest.mark.parametrize(("fields", "characters"), [({"use_letters": False}, DIGITS), ({"use_digits": False}, LETTERS)])
@pytest.mark.parametrize("salt", ["", "2026"])
async def test_a_code_is_made_of_the_wanted_characters(
    bench: Bench, fields: dict[str, Any], characters: str, salt: str
) -> None:
    assert set(await code(bench, length=32, salt=salt, **fields)) <= set(characters)


async def test_a_code_without_letters_and_digits_is_refused(bench: Bench) -> None:
    fields = {**CREATE, "use_letters": False, "use_digits": "false"}
    assert "letters or digits" in await bench.error(fields, PRIVATE)


CHANGES = [
    ({"promo_code": "Новый"}, {"promo_code": "Новый"}),
    ({"promo_name": "winter"}, {"promo_name": "winter"}),
    ({"target_user_id": BORIS}, {"target_user_id": str(BORIS)}),
    ({"user_id": "any"}, {"target_user_id": None}),
    ({"expired_at": "31.12.2099"}, {"expired_at": "2099-12-31T23:59:59+03:00"}),
    ({"permanent": True}, {"permanent": True}),
]


@pytest.mark.parametrize(("fields", "wanted"), CHANGES)
async def test_what_is_written_changes_and_the_rest_stays(
    bench: Bench, fields: dict[str, Any], wanted: dict[str, Any]
) -> None:
    other = await bench.results({**CREATE, "promo_name": "other"}, PRIVATE, run="0")
    made = await bench.results({**CREATE, "expire": "2d"}, PRIVATE)
    changed = await bench.results({"type": "modify_promo", **fields}, PRIVATE, results=made, run="2")
    stays = {"promo_id", "promo_code", "promo_name", "target_user_id"} - wanted.keys()
    assert wanted.items() <= changed.items()
    assert {name: changed[name] for name in stays} == {name: made[name] for name in stays}
    found = await bench.results({"type": "promo_management"}, PRIVATE)
    assert [line.split("</code>")[0][6:] for line in found["text"].split("\n")] == [
        changed["promo_code"], other["promo_code"],
    ]  # fmt: skip
    if changed["promo_code"] != made["promo_code"]:
        assert "no such" in await bench.error({**CHECK, "promo_code": made["promo_code"]}, PRIVATE)


async def test_a_repeated_change_happens_once_and_a_code_of_another_promo_is_refused(bench: Bench) -> None:
    first, second = [await bench.results(CREATE, PRIVATE, run=run) for run in "ab"]
    change = {"type": "modify_promo", "promo_id": first["promo_id"], "expire": "1h"}
    changed = await bench.results(change, PRIVATE)
    assert await bench.results(change, PRIVATE) == changed
    taken = {**change, "promo_code": second["promo_code"].lower()}
    assert "belongs to another promo" in await bench.error(taken, PRIVATE, run="3")
    assert "no promo with the id 99" in await bench.error({**change, "promo_id": 99}, PRIVATE, run="4")
    assert "promo_id is missing" in await bench.error({"type": "modify_promo"}, PRIVATE, run="5")


async def test_of_two_changes_at_the_same_moment_one_is_refused(bench: Bench, store: Store) -> None:
    await code(bench)
    promos = Promos(store, TENANT)
    (promo,) = await promos.newest(1)
    await promos.change(promo, structs.replace(promo, name="winter"))
    with pytest.raises(Conflict, match="at the same moment"):
        await promos.change(promo, structs.replace(promo, name="spring"))


async def test_a_code_that_never_expires_is_listed_behind_every_date_and_before_none(bench: Bench) -> None:
    day, promos = datetime(2026, 12, 1, tzinfo=UTC), Promos(bench.services.core.store, TENANT)
    for name, ends in (("EARLY", day - timedelta(days=1)), ("LATE", day + timedelta(days=1)), ("NEVER", None)):
        await promos.store(Promo(name, "autumn", "", 0, to_ms(ends) if ends else 0, name))
    for wanted, codes in (
        (PromoManagementAttributes(expired_before=day), ["EARLY"]),
        (PromoManagementAttributes(expired_after=day), ["NEVER", "LATE"]),
    ):
        assert [one.code for one in await promos.newest(9, wanted.matches)] == codes


async def test_an_expired_code_is_dropped_after_30_days(bench: Bench, store: Store) -> None:
    over = await code(bench, "a", started_at="2020-01-01", expired_at="2020-02-01")
    kept = await code(bench, "b")
    assert [one.code for one in await Promos(store, TENANT).newest(10)] == [kept]
    assert await Promos(store, TENANT).find(over) is None
    assert await Promos(store, TENANT).with_id(1) is None


async def test_a_lifetime_counts_hours_also_over_a_change_of_the_clock(bench: Bench) -> None:
    berlin = replace(bench, services=replace(bench.services, timezone=ZoneInfo("Europe/Berlin")))
    fields = {**CREATE, "started_at": "2037-03-28T12:00", "expire": "24h"}
    assert (await berlin.results(fields, PRIVATE))["expired_at"] == "2037-03-29T13:00:00+02:00"


async def test_the_last_day_of_the_calendar_is_an_end_like_any_other(bench: Bench) -> None:
    results = await bench.results({**CREATE, "expired_at": "31.12.9999"}, PRIVATE)
    assert results["expired_at"] == "9999-12-31T00:00:00+03:00"


async def test_a_person_that_is_deleted_is_taken_out_of_all_its_codes(
    bench: Bench, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scenarios.stores.promo._PAGE", 2)
    codes = [await code(bench, str(number)) for number in range(5)]
    promos = Promos(store, TENANT)
    await promos.forget(str(ANNA))
    assert [promo.user_id for one in codes if (promo := await promos.find(one))] == ["deleted"] * 5
