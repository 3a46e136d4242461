"""Random scenarios on a real server, with crashes, end as the pure rules say, and each message is sent once."""

import asyncio
from collections import Counter

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scenarios.bot import Scenario
from tests.scenarios.engine.reference import read
from tests.scenarios.engine.test_model import plans
from tests.scenarios.execution.world import Plan, World, as_executed, have_own_names
from tests.support.hypothesis_settings import SETTINGS
from tests.support.limits import bounded
from tests.support.servers import Server


def test_a_run_with_crashes_at_any_point_ends_as_without_and_sends_each_message_once(server: Server) -> None:
    with asyncio.Runner() as runner:
        world = World(server)
        runner.run(world.open())

        @settings(SETTINGS, max_examples=100)
        @given(planned=plans(), crashes=st.lists(st.integers(0, 9), max_size=15))
        def check(planned: tuple[Scenario, Plan], crashes: list[int]) -> None:
            scenario, plan = planned[0], as_executed(planned[1])
            assume(have_own_names(plan, scenario))
            assert runner.run(bounded(world.play(plan, scenario, crashes))) == read(plan, scenario)
            copies = Counter(message.text for message in world.courier.attempted)
            assert set(copies.values()) <= {1}

        check()
        assert world.courier.attempted
        runner.run(world.close())
