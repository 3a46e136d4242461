"""A crash at every single call of the store, in a chain of ten steps with three messages."""

from collections import Counter

import pytest

from tests.scenarios.engine.play import action, scenario
from tests.scenarios.engine.reference import Planned, read
from tests.scenarios.execution.world import World
from tests.support.servers import Server

SENDS = (1, 4, 8)
PLAN = {
    f"step{n}": Planned("completed" if n in SENDS else "failed", {} if n in SENDS else {f"r{n}": n}) for n in range(10)
}
CHAIN = scenario("ten", *(action(name, "any") for name in PLAN))


@pytest.mark.parametrize("patience", [30, 0])
async def test_a_ten_step_chain_with_three_messages_survives_a_crash_at_every_call(
    server: Server, patience: float
) -> None:
    """In place, and parked at each message."""
    world = World(server, patience)
    await world.open()
    expected = read(PLAN, CHAIN)
    crash = 0
    while world.has_crashed:
        assert await world.play(PLAN, CHAIN, [crash]) == expected
        crash += 1
    copies = Counter(message.text for message in world.courier.attempted)
    assert set(copies.values()) == {1}
    assert len(copies) == 3 * crash
    assert crash > 2 * (len(PLAN) + len(SENDS))
    await world.close()


async def test_a_step_costs_one_script_and_a_message_one_more(server: Server) -> None:
    world = World(server)
    await world.open()
    await world.play(PLAN, CHAIN, [])
    assert world.store.scripts == Counter(meet_person=1, begin_run=1, save_run=10, enqueue=3)
    await world.close()
