"""The action `history`: what was said in the chat before."""

import pytest

from tests.scenarios.execution.conftest import Installation

SCENARIOS = """
main:
  actions:
    - {type: send, text: "<b>Ответ</b> на {event_text}"}
    - {type: send, text: "other people", to: {id: 5}}
    - {type: send, text: "refused", required_role: nobody}
past:
  actions:
    - {type: history, placeholder: true%s}
    - {type: send, text: "{messages_processed}: {history_text}", chain: completed}
"""


async def past(installation: Installation, fields: str = "", **event: str) -> str:
    """What the action returns after three messages."""
    installation.write("scenarios/s.yaml", SCENARIOS % fields)
    installation.write("triggers.yaml", 'text: {exact: {/past: s.past}, "*": {scenario: s.main, from_chat: all}}')
    running = await installation.start()
    for text in ("раз", "<два>", "три"):
        await installation.play(text, first_name="Анна", **event)
    await installation.play("нет", user_id="8", chat_id="8")
    await installation.play("/past", first_name="Анна")
    await running.stop()
    return installation.texts[-1]


async def test_the_history_is_what_the_person_wrote_and_what_the_bot_answered_in_order(
    installation: Installation,
) -> None:
    said = "Анна: раз\nbot: Ответ на раз\nАнна: &lt;два&gt;\nbot: Ответ на &lt;два&gt;\nАнна: три\nbot: Ответ на три"
    assert await past(installation) == f"6: {said}"


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        (", limit: 3", "3: bot: Ответ на &lt;два&gt;\nАнна: три\nbot: Ответ на три"),
        (", limit: 1, time_before: 1h", "1: bot: Ответ на три"),
        (", limit: 2, reverse: false", "2: bot: Ответ на три\nАнна: три"),
        (", time_before_date: 2099-01-01", "0: "),
        (", from_chat: 9", "0: "),
    ],
)
async def test_the_history_may_be_limited(installation: Installation, fields: str, shown: str) -> None:
    assert await past(installation, fields) == shown


async def test_the_history_of_another_chat_is_another_one(installation: Installation) -> None:
    group = {"chat_id": "-5", "chat_type": "group"}
    assert await past(installation, **group) == "0: "
    assert await past(installation, ", from_chat: -5, limit: 1") == "1: bot: Ответ на три"


async def test_a_moment_is_shown_as_the_person_has_read_it(installation: Installation) -> None:
    installation.write("bot.yaml", "timezone: Asia/Vladivostok")
    installation.write(
        "scenarios/s.yaml",
        SCENARIOS.replace("на {event_text}", "в {event_date}") % "",
    )
    installation.write("triggers.yaml", 'text: {exact: {/past: s.past}, "*": s.main}')
    await installation.start()
    await installation.play("раз", event_date="2026-12-15T20:00:00+00:00")
    await installation.play("/past")
    assert installation.texts[-1].endswith("bot: Ответ в 16.12.2026 06:00")
