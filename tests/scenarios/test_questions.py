"""The questions of `ask`: which text answers a choice, and when the person is reminded."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from core.model.history_key import HistoryKey
from providers.models import Models
from scenarios.actions.ask import AskAttributes, remind, with_options
from scenarios.bot import Bot
from scenarios.bot.button_data import PageTurn
from scenarios.context import Asking
from scenarios.engine import Values
from scenarios.placeholders.attributes import Prepared
from scenarios.schema.attributes import converted
from scenarios.schema.questions import AskedQuestion, NoAnswer, interrupts, read_answer
from scenarios.sending.message import inline_rows
from tests.scenarios.actions.contexts import context_of

HOUR_MS = 3_600_000


def question_with(options: list[Any]) -> AskedQuestion:
    own = {"options": options}
    return converted(AskAttributes, Prepared(own, own, Values()), UTC).question(Bot(), 1, datetime.now(UTC))


@pytest.mark.parametrize(
    ("options", "text", "answer"),
    [
        (["Single", "Double"], "double", "Double"),
        (["Single", "Double"], "2", "Double"),
        ([3, 5, 10], "3", "3"),
        ([3, 5, 10], "10", "10"),
        ([3, 5, 10], "1", "3"),
        ([0, 1], "0", "0"),
        ([0, 1], "1", "1"),
    ],
)
def test_a_choice_is_answered_by_its_words_and_only_then_by_its_number(
    options: list[Any], text: str, answer: str
) -> None:
    assert read_answer(question_with(options), {"event_text": text}, UTC) == answer


@pytest.mark.parametrize("text", ["0", "4", "-1", ""])
def test_a_number_without_an_option_is_no_answer(text: str) -> None:
    with pytest.raises(NoAnswer):
        read_answer(question_with([3, 5, 10]), {"event_text": text}, UTC)


@pytest.mark.parametrize(
    "options",
    [
        ["C", "C++", "C#"],
        ["10%", "10", "+", "-"],
        [f"{'Прикладная математика и информационные технологии' * 2}, {profile}" for profile in ("физика", "химия")],
    ],
)
@pytest.mark.parametrize("inline", [[], "own"])
def test_each_option_is_answered_by_its_own_button(options: list[str], inline: list[str] | str) -> None:
    """`C++` was stored as `C`: both buttons sent `c`."""
    question = question_with(options)
    shown = with_options(AskAttributes(inline=inline_rows([options] if inline else [])), question, PageTurn("", 0))
    buttons = [button for row in shown.inline for button in row]
    assert [button["text"] for button in buttons] == options
    pressed = [read_answer(question, {"callback_data": one["data"] or one["text"]}, UTC) for one in buttons]
    assert pressed == options
    assert not any(interrupts(question, {"kind": "callback", "callback_data": one["data"]}) for one in buttons[:2])


async def test_of_reminders_that_fell_due_during_an_outage_one_comes_and_the_next_after_the_whole_time(
    tmp_path: Path,
) -> None:
    now = 100 * HOUR_MS
    context = context_of(tmp_path, Models.not_set_up(), {"text": "Well?", "remind": "1h"})
    context = replace(context, services=cast(Any, SimpleNamespace(now_ms=lambda: now, timezone=UTC)))
    asking = Asking(now + 10 * HOUR_MS, remind=now - 9 * HOUR_MS, delivery=HistoryKey(0, "7", 1))
    assert (await remind(context, asking)).remind == now + HOUR_MS
