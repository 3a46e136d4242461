"""Variables on a real server: they outlive the run, a repeated step changes them once, and they end (C-93)."""

import asyncio
from datetime import timedelta

import pytest

from core.errors import Conflict
from core.model.clock import in_ms, to_ms
from core.redis.keys import KEYS
from scenarios.bot.data import Data
from scenarios.check.dry_run import dry_run
from scenarios.loader import load
from scenarios.schema.variables import Change, applied
from scenarios.stores.variables import Variables
from tests.scenarios.execution.conftest import Installation, states
from tests.support.stack import TENANT

pytestmark = pytest.mark.parametrize("shards", [16])

EVENT = {"channel": "echo", "user_id": "7", "chat_id": "-100"}


async def test_a_variable_outlives_its_run_and_belongs_to_its_person_or_chat(installation: Installation) -> None:
    installation.write("variables.yaml", "person: {visits: {type: number, default: 0}}\nchat: {topic: text}")
    installation.actions("""
    - {type: set, variables: {person.visits: {add: 1}, chat.topic: "{event_text}"}}
    - {type: send, text: "{person.visits} {chat.topic}", chain: completed}
    - {type: send, text: "before: {person.visits} {chat.topic}"}
""")
    await installation.start()
    await installation.play("a", chat_id="-100")
    await installation.play("b", chat_id="-100")
    await installation.play("c", user_id="8", chat_id="-100")
    assert [text for text in installation.texts if "before" not in text] == ["1 a", "2 b", "1 c"]
    assert [text for text in installation.texts if "before" in text] == ["before: 0 ", "before: 1 a", "before: 0 b"]


async def test_a_repeated_step_counts_once_and_a_value_ends(installation: Installation) -> None:
    store = installation.stack.store
    variables = Variables(store, TENANT)
    count, add = Change("person", "n", "add", 2, 0, 5), Change("person", "l", "append", "x", 60)
    for _ in range(2):
        assert await variables.change("run:0", EVENT, [count, add]) == {"n": 7, "l": ["x"]}
    assert await variables.change("run:1", EVENT, [count]) == {"n": 9}
    now = to_ms(installation.stack.now())
    assert await variables.stored("person", EVENT, now) == {"n": 9, "l": ["x"]}
    assert await variables.stored("person", EVENT, now + in_ms(timedelta(seconds=61))) == {"n": 9}
    assert await variables.stored("person", {**EVENT, "user_id": "8"}, now) == {}
    await variables.change("run:2", EVENT, [Change("person", "n", "clear", None, 0)])
    assert await variables.stored("person", EVENT, now + 61_000) == {}


async def test_of_many_at_once_only_as_many_get_a_place_as_there_are_and_one_that_is_given_back_is_free(
    installation: Installation,
) -> None:
    """The store and the rehearsal treat every element alike (C-105)."""
    variables = Variables(installation.stack.store, TENANT)

    async def book(n: int) -> bool:
        change = Change("bot", "taken", "append", 'a "b", [c]', 0, [1], times=2)
        try:
            await variables.change(f"book:{n}", {"channel": "echo", "user_id": str(n)}, [change])
        except Conflict:
            return False
        return True

    assert sum(await asyncio.gather(*map(book, range(8)))) == 2
    changes: list[tuple[str, Data]] = [
        ("append", {"x": [1, "]"]}), ("remove", 'a "b", [c]'), ("remove", 'a "b", [c]'), ("remove", "no"),
        ("remove", "1"), ("append", 100013), ("remove", "100013"), ("append", "2.5"), ("remove", 2.5),
        ("append", 'a "b'), ("append", 7), ("remove", 'a "b'), ("remove", 7),
    ]  # fmt: skip
    steps = [Change("bot", "taken", verb, element, 0, [1]) for verb, element in changes]
    value: Data = [1, 'a "b", [c]', 'a "b", [c]']
    for n, step in enumerate(steps):
        value = applied(step, value)
        assert await variables.change(f"step:{n}", {}, [step]) == {"taken": value}
    once = Change("bot", "ids", "append", "7", 0, [7], times=1)
    with pytest.raises(Conflict):
        applied(once, None)
    with pytest.raises(Conflict):
        await variables.change("once", {}, [once])
    assert value == [{"x": [1, "]"]}]
    assert await book(9)
    first, second = (Change("bot", "host", "if_empty", name, 0) for name in ("Anna", "Boris"))
    for _ in range(2):
        assert await variables.change("run:0", {}, [first]) == {"host": "Anna"}
    with pytest.raises(Conflict):
        await variables.change("run:1", {}, [Change("bot", "n", "add", 1, 0), second])
    now = to_ms(installation.stack.now())
    assert await variables.stored("bot", {}, now) == {"taken": [{"x": [1, "]"]}, 'a "b", [c]'], "host": "Anna"}


@pytest.mark.parametrize("scope", ["person", "run"])
@pytest.mark.parametrize("element", ["x", "y" * 64], ids=["more than 1000 elements", "more than 64 KiB"])
async def test_a_dry_run_ends_as_the_real_one_with_a_long_list(
    installation: Installation, element: str, scope: str
) -> None:
    actions = """
    - {type: set, variables: {person.l: "{event_text}"}}
    - {type: set, variables: {person.l: {append: one more}}, chain: completed}
    - {type: send, text: "{person.l|length} elements", chain: completed}
    - {type: for_each, items: "{person.l}", scenario: each, chain: completed}
"""
    installation.write("variables.yaml", f"{scope}: {{l: list}}").actions(actions.replace("person", scope))
    text = ",".join([element] * 975)
    text += ",x" * 25
    await installation.start()
    real = await installation.play(text)
    dry = dry_run(load(installation.folder).bot, {**EVENT, "event_text": text}).rows
    assert [row.outcome for row in dry] == states(real)
    assert [row.send.text for row in dry if row.send] == installation.texts
    assert [row.why.endswith(action.error) for row, action in zip(dry, real.actions, strict=True)] == [True] * 4
    assert any(action.error for action in real.actions)


async def test_an_event_keeps_a_variable_that_lasts_longer_than_its_person(installation: Installation) -> None:
    store, seconds = installation.stack.store, 500 * 86400
    await Variables(store, TENANT).change("run:3", EVENT, [Change("person", "x", "set", "y", seconds)])
    await Variables(store, TENANT).change("run:4", EVENT, [Change("person", "n", "set", 1, 0)])
    shard = store.shard_of_person(TENANT, "echo", "7")
    await store.run("meet_person", shard, TENANT, "echo", "7", "", in_ms(timedelta(days=400)))
    await store.run("set_state", shard, TENANT, "echo", "7", "s", 1000, in_ms(timedelta(days=400)))
    left = await store.command("PTTL", KEYS["person"].at(shard, TENANT, "echo", "7"))
    assert left > in_ms(timedelta(days=499))


async def test_an_element_is_added_to_a_variable_that_was_a_text_before(installation: Installation) -> None:
    variables = Variables(installation.stack.store, TENANT)
    await variables.change("run:4", EVENT, [Change("person", "l", "set", "old", 0)])
    assert await variables.change("run:5", EVENT, [Change("person", "l", "append", "x", 0)]) == {"l": ["x"]}


async def test_an_element_that_is_not_there_is_named_in_the_log(
    installation: Installation, caplog: pytest.LogCaptureFixture
) -> None:
    """A slot that was kept as a date never left the list, and nobody saw it."""
    installation.write("variables.yaml", "{person: {seat: text}, bot: {taken: list}}")
    installation.actions("""
    - {type: set, variables: {bot.taken: {append: "2026-12-03 10:00"}}}
    - {type: set, variables: {bot.taken: {remove: "2026-12-03T10:00"}}, chain: true}
    - {type: set, variables: {bot.taken: {remove: "{person.seat}"}}, chain: true}
    - {type: set, variables: {bot.taken: {remove: "2026-12-03 10:00"}}, chain: true}
""")
    await installation.start()
    await installation.play()
    (said,) = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert "bot.taken has no element 2026-12-03T10:00" in said
