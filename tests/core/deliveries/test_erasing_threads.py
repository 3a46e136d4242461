"""What the deletion of a person costs that has written in threads: each delivery of the tenant is looked at."""

import pytest

from core.deliveries.histories.reader import HistoryReader
from core.model.delivery import Accepted
from core.model.history_key import HistoryKey
from tests.support.stack import TENANT, FakeCourier, Stack, order, person

MOST = {"0.mine": 15.5, "0.nobody's": 0.5}
"""Commands for a delivery of the thread, with those within functions, beyond the one that looks at it."""


async def relays(stack: Stack, thread: str, count: int = 200) -> list[HistoryKey]:
    about = {"origin": "replies", "kind": "reply", "thread": thread, "text": "Secret words"}
    made = [(order(person(number), **about), None) for number in range(count)]
    return [one.key for one in await stack.deliveries.enqueue_many(made) if isinstance(one, Accepted)]


async def commands(stack: Stack) -> int:
    stats = await stack.redis.info("commandstats")
    return sum(stats[name]["calls"] for name in ("cmdstat_fcall", "cmdstat_hmget") if name in stats)


@pytest.mark.parametrize("thread", MOST)
async def test_words_of_a_thread_are_erased_with_few_commands(stack: Stack, thread: str) -> None:
    mine, others = await relays(stack, "0.mine"), await relays(stack, "0.others")
    before = await commands(stack)
    await stack.deliveries.of_person.erase_threads(TENANT, {thread})
    assert await commands(stack) - before <= len(mine) * MOST[thread] + len([*mine, *others])
    reader = HistoryReader(stack.store)
    texts = [(await reader.read_fields(key, ["text"]))["text"] for key in (*mine, *others)]
    assert texts == (["" if thread == "0.mine" else "Secret words"] * len(mine) + ["Secret words"] * len(others))


async def test_a_delivery_that_has_ended_is_not_cancelled_before_its_words_go(stack: Stack) -> None:
    """The deletion of a person with 10,000 relays in a thread took a minute: each was cancelled, one after another."""
    await stack.courier(FakeCourier())
    mine = await relays(stack, "0.mine", 40)
    for key in mine:
        await stack.finished(key)
    before = await commands(stack)
    await stack.deliveries.of_person.erase_threads(TENANT, {"0.mine"})
    assert await commands(stack) - before <= len(mine) * 5
