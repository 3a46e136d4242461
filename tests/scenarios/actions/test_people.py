"""What a bot knows of people, and their states."""

from datetime import timedelta

import pytest

from core.model.clock import in_ms
from core.redis.keys import KEYS
from core.redis.store import Store
from scenarios.stores.people import KEPT, People
from tests.sandbox.bot_api_clients import ANNA, BORIS, GROUP
from tests.scenarios.actions.conftest import IN_GROUP, PRIVATE, TENANT, Bench
from tests.support.waiting import until

pytestmark = pytest.mark.parametrize("shards", [16])

HOUR = timedelta(hours=1)
ANNA_WRITES = {**PRIVATE, "username": "Anna_K", "first_name": "Анна", "last_name": "Ким"}


def moved(store: Store, later: timedelta) -> None:
    """Move the clock of the scripts."""
    store.clock_offset_ms += later // timedelta(milliseconds=1)


def record_of(store: Store, person: int) -> str:
    """The key of a person's record."""
    shard = store.shard_of_person(TENANT, "telegram-bot", str(person))
    return KEYS["person"].at(shard, TENANT, "telegram-bot", str(person))


async def test_each_event_creates_or_refreshes_the_record_of_its_person(bench: Bench, store: Store) -> None:
    people = bench.people
    await people.met(ANNA_WRITES)
    moved(store, HOUR)
    await people.met({**PRIVATE, "first_name": "Анна", "chat_id": GROUP, "username": "anna"})
    person = await people.find("telegram-bot", str(ANNA))
    assert person is not None
    assert (person.username, person.first_name, person.last_name) == ("anna", "Анна", "")
    assert person.chats == (str(GROUP), str(ANNA))
    assert HOUR <= person.last_seen - person.first_seen < HOUR + timedelta(minutes=1)
    await people.met(PRIVATE)  # an event without names leaves them
    again = await people.find("telegram-bot", str(ANNA))
    assert again is not None
    assert again.username == "anna"


async def test_a_record_is_bounded_and_ends_400_days_after_the_last_event(bench: Bench, store: Store) -> None:
    for chat in range(30):
        await bench.people.met({**ANNA_WRITES, "chat_id": -chat})
    person = await bench.people.find("telegram-bot", str(ANNA))
    assert person is not None
    assert person.chats == tuple(str(-chat) for chat in range(29, 9, -1))
    shard = store.shard_of_person(TENANT, "telegram-bot", str(ANNA))
    keys = [record_of(store, ANNA), KEYS["username"].at(shard, TENANT, "telegram-bot", "anna_k")]
    for key in keys:
        assert 0 <= KEPT.total_seconds() - await store.command("TTL", key) < 60


async def is_older(store: Store, person: int, ms: int) -> bool:
    """Whether a record was written longer ago than this."""
    return int(await store.command("PTTL", record_of(store, person))) < in_ms(KEPT) - ms


async def test_a_name_leads_to_the_person_who_was_last_seen_with_it(bench: Bench, store: Store) -> None:
    people = bench.people
    await people.met(ANNA_WRITES)
    assert await people.named("telegram-bot", "@ANNA_k") == str(ANNA)
    assert await people.named("vk", "Anna_K") is None
    await until(lambda: is_older(store, ANNA, 5))
    await people.met({**IN_GROUP, "username": "anna_k"})
    assert await people.named("telegram-bot", "anna_k") == str(BORIS), "the name of Anna is in the records of both now"
    await until(lambda: is_older(store, BORIS, 5))
    await people.met(ANNA_WRITES)
    assert await people.named("telegram-bot", "anna_k") == str(ANNA), "whichever shard has the later one"
    await until(lambda: is_older(store, ANNA, 5))
    await people.met({**IN_GROUP, "username": "anna_k"})
    await people.met({**ANNA_WRITES, "username": "anna2"})
    assert await people.named("telegram-bot", "anna_k") == str(BORIS)
    await people.met({**ANNA_WRITES, "username": ""})
    assert await people.named("telegram-bot", "anna2") is None
    assert await people.named("telegram-bot", "") is None


async def test_those_who_join_a_group_are_known_from_then_on(bench: Bench) -> None:
    event = {**IN_GROUP, "kind": "new_member", "joined_user_ids": [ANNA, 5], "joined_usernames": ["anna", None]}
    await bench.people.met(event)
    assert await bench.people.named("telegram-bot", "anna") == str(ANNA)
    assert await bench.people.find("telegram-bot", "5") is not None


async def test_a_name_in_other_letters_than_latin_is_found_as_it_is_written(bench: Bench) -> None:
    await bench.people.met({**PRIVATE, "username": "Анна-K"})
    assert await bench.people.named("telegram-bot", "Анна-k") == str(ANNA)


async def test_a_state_lasts_600_seconds_unless_the_author_says_otherwise(bench: Bench, store: Store) -> None:
    await bench.results({"type": "user", "user_state": "feedback"}, PRIVATE)
    assert await bench.people.met(PRIVATE) == "feedback"
    moved(store, timedelta(seconds=590))
    assert await bench.people.met(PRIVATE) == "feedback"
    moved(store, timedelta(seconds=11))
    assert await bench.people.met(PRIVATE) == ""
    await bench.results({"type": "user", "user_state": "form", "expire": "1h 30m"}, PRIVATE)
    moved(store, timedelta(minutes=89))
    assert await bench.people.met(PRIVATE) == "form"
    moved(store, timedelta(minutes=2))
    assert await bench.people.met(PRIVATE) == ""


async def test_a_state_that_lasts_longer_than_a_record_is_kept_with_it_whatever_else_is_written(
    bench: Bench, store: Store
) -> None:
    """The next event shortened the life of the record to 400 days, and so did a keyboard."""
    key, longest = record_of(store, ANNA), timedelta(days=500)

    async def left() -> timedelta:
        return timedelta(seconds=await store.command("TTL", key))

    await bench.results({"type": "user", "user_state": "subscribed", "expire": "500d"}, PRIVATE)
    assert longest - HOUR < await left() <= longest
    await bench.people.met(ANNA_WRITES)
    assert longest - HOUR < await left() <= longest
    await bench.people.set_keyboard("telegram-bot", str(ANNA), "2")
    assert longest - HOUR < await left() <= longest
    await bench.results({"type": "user", "user_state": ""}, PRIVATE)
    await bench.people.met(ANNA_WRITES)
    assert longest - HOUR < await left() <= longest, "a variable may last as long, so nothing shortens the life"


async def test_a_keyboard_of_a_person_who_was_never_met_ends_with_the_record(bench: Bench, store: Store) -> None:
    await bench.people.set_keyboard("telegram-bot", str(ANNA), "2")
    key = record_of(store, ANNA)
    assert 0 < await store.command("TTL", key) <= KEPT.total_seconds()


@pytest.mark.parametrize("cleared", ["", None])
async def test_an_empty_state_clears(bench: Bench, cleared: str | None) -> None:
    await bench.results({"type": "user", "user_state": "feedback"}, PRIVATE)
    await bench.results({"type": "user", "user_state": cleared}, PRIVATE)
    assert await bench.people.met(PRIVATE) == ""


async def test_a_state_is_one_of_a_person_in_a_channel_and_tenant(bench: Bench, store: Store) -> None:
    await bench.results({"type": "user", "user_state": "feedback"}, PRIVATE)
    assert await bench.people.met({**PRIVATE, "chat_id": GROUP}) == "feedback"
    assert await bench.people.met({**PRIVATE, "channel": "vk"}) == ""
    assert await bench.people.met(IN_GROUP) == ""
    assert await People(store, "college").met(PRIVATE) == ""


async def test_an_event_costs_one_command_with_its_state(bench: Bench, store: Store) -> None:
    await bench.people.met(ANNA_WRITES)
    before = await store.redis.info("commandstats")
    await bench.people.met(ANNA_WRITES)
    after = await store.redis.info("commandstats")
    assert after["cmdstat_fcall"]["calls"] - before["cmdstat_fcall"]["calls"] == 1


async def test_a_state_that_cannot_be_set_fails_with_the_reason(bench: Bench) -> None:
    assert "no user_state" in await bench.error({"type": "user"}, PRIVATE)
    wrong = {"type": "user", "user_state": "x", "expire": "soon"}
    assert "'soon' is not a duration" in await bench.error(wrong, PRIVATE)


async def test_a_repeated_step_deletes_a_row_of_a_form_once(bench: Bench) -> None:
    row = {"type": "form", "form": "wash", "row": "6 am"}
    await bench.results({**row, "values": {"paid": "no"}}, PRIVATE, run="1")
    for _ in range(2):
        assert (await bench.results({**row, "delete": True}, PRIVATE, run="2"))["count"] == 0
    await bench.results({**row, "values": {"paid": "yes"}}, PRIVATE, run="3")
    assert (await bench.results({**row, "delete": True}, PRIVATE, run="2"))["count"] == 1, "a repeat deletes no new row"
    assert "no row" in await bench.error({**row, "row": "7 am", "delete": True}, PRIVATE, run="4")
