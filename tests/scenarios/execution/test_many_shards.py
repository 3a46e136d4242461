"""A bot over 16 shards: all that belongs to a person stands in one, and what goes over all people reads them all."""

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from core.redis.store import Store
from core.updates.events import TUBE
from scenarios.stores.forms import FormAnswer, Forms
from scenarios.stores.people import People
from scenarios.stores.variables import Variables
from tests.scenarios.execution.conftest import Installation
from tests.support.audited import violations_in
from tests.support.cluster import Cluster
from tests.support.stack import TENANT, Stack
from tests.support.waiting import until

SHARDS = 16
PEOPLE = [f"{number}" for number in range(100, 130)]
LINES = [f"line {number}" for number in range(3)]

COUNTS = """
    - {type: set, variables: {person.lines: {add: 1}}}
    - {type: send, text: "{event_text} {person.lines}", chain: completed}
"""

pytestmark = pytest.mark.parametrize("shards", [SHARDS])


def counting(installation: Installation) -> Installation:
    """A bot that answers each line with the number of lines that the person has written."""
    installation.write("variables.yaml", "person: {lines: number}")
    return installation.actions(COUNTS)


async def write(bot: Installation, *people: str) -> list[str]:
    """All of these people write their lines at the same time, each one line after the other. Returns the runs."""

    async def lines(person: str) -> list[str]:
        return [await bot.put(line, user_id=person, chat_id=person) for line in LINES]

    return [run for runs in await asyncio.gather(*map(lines, people)) for run in runs]


def answers(bot: Installation) -> dict[str, list[str]]:
    """The answers that each person got, in order."""
    found = defaultdict[str, list[str]](list)
    for message in bot.courier.attempted:
        found[message.address].append(message.text)
    return found


IN_ORDER = [f"{line} {number}" for number, line in enumerate(LINES, 1)]


async def test_the_lines_of_each_person_are_answered_in_order_by_several_processes(installation: Installation) -> None:
    bot = counting(installation)
    await bot.start()
    await bot.start()
    for run in await write(bot, *PEOPLE):
        await bot.over(run)
    assert answers(bot) == dict.fromkeys(PEOPLE, IN_ORDER)
    await until(lambda: nothing_left(bot.stack))
    assert await violations_in(bot.stack.store) == []


async def nothing_left(stack: Stack) -> bool:
    return not any((await stack.queue.inspector.ready_tasks()).values())


def persons_in(keys: list[str]) -> set[tuple[int, str]]:
    """(shard, person) of all keys that name a person of the test."""
    found = (re.fullmatch(r"[a-z:]+\{(\d+)\}:.*\becho:(1[0-5]\d)(?::.*)?", key) for key in keys)
    return {(int(match[1]), match[2]) for match in found if match}


async def test_task_state_variables_and_runs_of_a_person_stand_in_its_shard(installation: Installation) -> None:
    bot = counting(installation)
    store, people = bot.stack.store, People(bot.stack.store, TENANT)
    await write(bot, *PEOPLE[:20])
    waiting = {(task.shard, task.user) for task in await bot.stack.take(TUBE, 100)}
    assert waiting == {(store.shard_of_person(TENANT, "echo", one), f"echo:{one}") for one in PEOPLE[:20]}
    await bot.stack.end_everything()
    await bot.start_courier()
    await bot.start()
    for run in await write(bot, *PEOPLE[20:]):
        await bot.over(run)
    keys = [str(key) async for key in store.redis.scan_iter(count=1000)]
    stands = {(store.shard_of_person(TENANT, "echo", one), one) for one in PEOPLE}
    assert persons_in(keys) <= stands
    kinds = ("persons:{%d}:person:", "runs:{%d}:of:")
    for one in PEOPLE[20:]:
        shard = store.shard_of_person(TENANT, "echo", one)
        assert {key.partition("}")[0] for key in keys if key.endswith(f":echo:{one}")} >= {
            kind.partition("}")[0] % shard for kind in kinds
        }
    assert len({shard for shard, _ in stands}) > SHARDS / 2
    assert {one async for one in people.all()} == {("echo", one) for one in PEOPLE[20:]}


async def test_a_table_of_answers_is_merged_from_all_shards_in_pages(installation: Installation) -> None:
    forms, store = Forms(installation.stack.store), installation.stack.store
    for at, one in enumerate(reversed(PEOPLE)):
        await forms.note(TENANT, f"form {at % 3}", f"echo:{one}", {"room": FormAnswer(1, at, at)})
        await forms.note(TENANT, "all", f"echo:{one}", {"room": FormAnswer(1, at, at)})
    assert await forms.names(TENANT) == ["all", "form 0", "form 1", "form 2"]
    found, cursor, pages = list[str](), "", 0
    while pages == 0 or cursor:
        table = await forms.table(TENANT, "all", cursor, 7)
        found += [row.person for row in table.rows]
        cursor, pages = table.next or "", pages + 1
    assert found == [f"echo:{one}" for one in reversed(PEOPLE)]
    assert pages == len(PEOPLE) // 7 + 1
    cursor = (await forms.table(TENANT, "all", "", 7)).next or ""
    for one in found[:7]:  # while somebody pages on
        address = one.partition(":")[2]
        await store.run("forget_forms", store.shard_of_person(TENANT, "echo", address), TENANT, "echo", address)
    assert [row.person for row in (await forms.table(TENANT, "all", cursor)).rows] == found[7:]
    await store.run("forget_forms", store.shard_of_person(TENANT, "echo", PEOPLE[5]), TENANT, "echo", PEOPLE[5])
    await forms.note(TENANT, "all", f"echo:{PEOPLE[6]}", {"room": FormAnswer(1, 1, 1)}, "second")
    await store.run("forget_forms", store.shard_of_person(TENANT, "echo", PEOPLE[6]), TENANT, "echo", PEOPLE[6])
    assert not {f"echo:{PEOPLE[5]}", f"echo:{PEOPLE[6]}"} & {
        row.person for row in (await forms.table(TENANT, "all")).rows
    }


# a cluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    opened = Cluster(tmp_path_factory.mktemp("cluster"), replicas=0)
    opened.start()
    yield opened
    opened.close()


@pytest.fixture
def whole(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster, empty; a test may freeze its nodes."""
    cluster.empty()
    yield cluster
    cluster.empty()


@pytest.fixture
async def bot_on_cluster(whole: Cluster, shards: int, tmp_path: Path) -> AsyncIterator[Installation]:
    """A counting bot with a courier and two processes on three primaries."""
    stack = Stack(await Store.open(whole.url, shards), whole.nodes[0])  # type: ignore[arg-type]
    folder = tmp_path / "bot"
    folder.mkdir()
    bot = counting(Installation(stack, folder))
    bot.url = whole.url
    await bot.start_courier()
    await bot.start()
    await bot.start()
    yield bot
    await bot.close()
    await stack.close()


async def test_the_people_of_a_bot_stand_on_all_primaries_of_a_cluster(
    bot_on_cluster: Installation, cluster: Cluster
) -> None:
    bot, store = bot_on_cluster, bot_on_cluster.stack.store
    for run in await write(bot, *PEOPLE):
        await bot.over(run)
    assert answers(bot) == dict.fromkeys(PEOPLE, IN_ORDER)
    found = dict[str, int]()
    for number, node in enumerate(cluster.nodes):
        records = list(node.command("KEYS", "persons:*:person:*"))
        assert records, f"primary {number} has people"
        assert all(cluster.owner(shard) is node for shard, _ in persons_in(node.command("KEYS", "*")))
        found |= {key.rpartition(":")[2]: number for key in records}
    assert sorted(found) == PEOPLE
    variables, now = Variables(store, TENANT), 0
    for one in PEOPLE:
        event = {"channel": "echo", "user_id": one}
        assert await variables.stored("person", event, now) == {"lines": len(LINES)}
    assert {one async for one in People(store, TENANT).all()} == {("echo", one) for one in PEOPLE}


async def test_people_of_the_other_primaries_are_answered_while_one_is_frozen(
    bot_on_cluster: Installation, cluster: Cluster
) -> None:
    bot, store = bot_on_cluster, bot_on_cluster.stack.store
    needed = cluster.owner(0), cluster.owner(store.shard_of_account("echo", bot.courier.account))
    lost = next(node for node in cluster.nodes if node not in needed)
    others = [one for one in PEOPLE if cluster.owner(store.shard_of_person(TENANT, "echo", one)) is not lost]
    lost.freeze()
    waiting = asyncio.create_task(write(bot, *(one for one in PEOPLE if one not in others)))
    for run in await write(bot, *others):
        await bot.over(run)
    assert answers(bot) == dict.fromkeys(others, IN_ORDER)
    lost.resume()
    for run in await waiting:
        await bot.over(run)
    assert answers(bot) == dict.fromkeys(PEOPLE, IN_ORDER)
