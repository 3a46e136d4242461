"""What became of a run: over HTTP and on the command line."""

from typing import Any

import msgspec
import pytest

from cli.commands.bots.scenario_show import lines
from core.errors import NotFound
from delivery.schemas.runs import Run
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.execution.reading import RunReader
from scenarios.execution.secrets import HIDDEN
from scenarios.schema import ActionType
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
    assert "  2. drop      s.main: send (action 1 ended as completed; the chain is failed)" in printed


SECRET, LINK = "s3cret-of-the-club", "https://login.example/once/abc"
VALUES = """
    - {type: sign, placeholder: true, api_key: "${CLUB_KEY}", user_state: "{event_text}"}
    - {type: send, text: "Hello {first_name}\\nby ${CLUB_KEY}", inline: [[{Sign in: "{sign_in_url}"}]], chain: true}
    - {type: user, user_state: "asked {event_text}", placeholder: true, note: "${CLUB_KEY}"}
    - {type: send, text: "never {first_name}", chain: failed}
"""


@pytest.mark.row("C-39")
async def test_a_run_shows_texts_and_values_of_each_step_without_secrets(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the names of the steps were shown, and the address at which a person signs in."""
    monkeypatch.setenv("CLUB_KEY", SECRET)
    installation.types["sign"] = ActionType("sign", "Signs.", other_fields=True, execute=sign)
    installation.actions(VALUES)
    await installation.start()
    run = await installation.play("hi", first_name="<Anna>")
    assert installation.texts == [f"Hello &lt;Anna&gt;\nby {SECRET}"]
    signed, sent, stated, dropped = run.actions
    assert signed.results == {"sign_in_url": HIDDEN, "access_token": HIDDEN, "tokens_used": 3}
    assert sent.send == {
        "text": "Hello &lt;Anna&gt;\nby ${CLUB_KEY}",
        "inline": [[{"text": "Sign in", "url": HIDDEN}]],
    }
    assert (stated.given["user_state"], stated.given["note"]) == ("asked hi", "${CLUB_KEY}")
    assert (dropped.given, dropped.send) == ({}, None)
    printed = list(lines(msgspec.to_builtins(Run.of(run))))
    assert SECRET not in str(run) + str(printed)
    assert LINK not in str(run) + str(printed)
    assert {"       « hi", "       » Hello &lt;Anna&gt;", "       » by ${CLUB_KEY}", "       → reached: 1"} <= {
        *printed
    }
    assert "       user_state: asked hi" in printed
    assert max(map(len, printed)) <= 80


async def sign(context: Any) -> Ending:
    return completed({"sign_in_url": LINK, "access_token": "t0ken-of-anna", "tokens_used": 3})


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
