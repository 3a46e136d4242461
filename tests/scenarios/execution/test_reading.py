"""What became of a run: over HTTP and on the command line."""

import msgspec
import pytest

from cli.commands.bots.scenario_show import lines
from core.errors import NotFound
from delivery.schemas.runs import Run
from scenarios.execution.reading import RunReader
from tests.scenarios.execution.conftest import Installation
from tests.support.stack import TENANT

CHAIN = """
    - {type: send, text: first}
    - {type: send, text: never, chain: failed}
    - {type: send, text: last, chain: drop, chain_drop: completed}
    - {type: send, text: cut, chain: any}
"""


@pytest.mark.row("C-39")
async def test_each_action_says_what_released_or_dropped_it_and_when(installation: Installation) -> None:
    installation.actions(CHAIN)
    await installation.start()
    run = await installation.play()
    assert [(action.n, action.state, action.cause, action.by) for action in run.actions] == [
        (1, "completed", "unchained", None),
        (2, "drop", "unmatched", 1),
        (3, "completed", "matched", 2),
        (4, "drop", "cut", 3),
    ]
    assert run.actions[1].why == "action 1 ended as completed; the chain is failed"
    assert run.actions[3].why == "action 3 ended as completed, which its chain_drop names"
    first, second, third, fourth = run.actions
    assert first.moved_at == run.began
    assert first.ended_at == second.moved_at == third.moved_at
    assert third.ended_at is not None
    assert fourth.moved_at == third.ended_at
    assert fourth.ended_at is None
    assert run.ended is not None
    assert run.ended >= third.ended_at


@pytest.mark.row("C-39")
async def test_a_run_is_shown_on_the_command_line(installation: Installation) -> None:
    installation.actions(CHAIN)
    await installation.start()
    shown = msgspec.to_builtins(Run.of(await installation.play()))
    printed = list(lines(shown))
    assert "echo:7  over" in printed[0]
    assert printed[2].startswith("  2. drop      s.main: send (action 1 ended as completed; the chain is failed)")


async def test_a_run_of_another_tenant_does_not_exist(installation: Installation) -> None:
    installation.actions(CHAIN)
    await installation.start()
    run = await installation.play()
    reader = RunReader(installation.stack.store)
    for tenant, name in (("other", run.id), (TENANT, "0.abc"), (TENANT, "nonsense"), (TENANT, "99.abc")):
        with pytest.raises(NotFound):
            await reader.read(tenant, name)


async def test_the_runs_of_a_person_are_listed_in_pages_the_newest_first(installation: Installation) -> None:
    installation.actions(CHAIN)
    await installation.start()
    runs = [(await installation.play(str(n))).id for n in range(5)]
    await installation.play(user_id="8", chat_id="8")
    reader, found, cursor = RunReader(installation.stack.store), [], None
    for _ in range(3):
        page, cursor = await reader.newest(TENANT, "echo:7", cursor, 2)
        found += [run.id for run in page]
    assert found == runs[::-1]
    assert cursor is None
