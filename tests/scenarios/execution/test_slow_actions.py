"""Speech and language models in runs on a real server: results, files that are sent, slow services (C-74 to C-78)."""

from datetime import timedelta
from pathlib import Path

import pytest

from core.model.content import EVERY_FEATURE, AttachmentType
from providers.models import FileCache, Models
from providers.models.openai import OpenAi
from providers.models.programs import Espeak
from sandbox.state import Fault, Rule, SandboxState
from scenarios.execution.step_executor import CONCURRENCY
from tests.providers.models.conftest import MINUTE, client, openai, probe, programs, service, state
from tests.scenarios.execution.conftest import WITHIN, Installation, states
from tests.support.waiting import until

__all__ = ["client", "openai", "programs", "service", "state"]

ASK_AND_SEND = """
    - {type: send, text: "first of {event_text}"}
    - {type: completion, user_message: "{event_text}", placeholder: true}
    - {type: send, text: "{error}", chain: failed, chain_drop: completed}
    - {type: send, text: "{response_text}", chain: true}
"""


@pytest.fixture
async def speaking(bare: Installation, openai: OpenAi, tmp_path: Path) -> Installation:
    """An installation with the sandbox's models, and speech by espeak-ng."""
    texts, sounds = (FileCache(tmp_path / "data" / name, 10**8, timedelta(days=1)) for name in ("answers", "speech"))
    bare.courier.shows = EVERY_FEATURE
    bare.models = Models(openai, Espeak("", MINUTE), openai, texts, sounds)
    await bare.start_courier()
    return bare


async def test_the_answer_of_a_model_is_sent_escaped(speaking: Installation) -> None:
    speaking.actions(ASK_AND_SEND)
    await speaking.start()
    run = await speaking.play("a < b")
    assert states(run) == ["completed", "completed", "drop", "completed"]
    assert speaking.texts == ["first of a &lt; b", "Answer to: a &lt; b"]


@pytest.mark.usefixtures("programs")
async def test_a_file_of_to_speech_is_sent_as_a_voice_message(speaking: Installation) -> None:
    speaking.actions("""
    - {type: to_speech, text_to_speech: "Привет, {event_text}", placeholder: true}
    - {type: send, text: "listen", attachment: "{file_path}", chain: completed}
    """)
    await speaking.start()
    assert states(await speaking.play("мир")) == ["completed", "completed"]
    content = speaking.courier.attempted[0].content
    assert content is not None
    (attachment,) = content.attachments
    assert attachment.type is AttachmentType.VOICE
    assert probe(Path(attachment.path))["codec_name"] == "opus"


async def test_slow_models_delay_no_message_and_run_ten_at_once(speaking: Installation, state: SandboxState) -> None:
    """Fifteen people wait for a model that does not answer; what is sent to them before, and to others, arrives."""
    state.add_rule(Rule("models", Fault("timeout"), method="completion"))
    speaking.actions(ASK_AND_SEND)
    speaking.write("triggers.yaml", 'text: {exact: {plain: plain.main}, "*": s.main}')
    speaking.write("scenarios/plain.yaml", "main: {actions: [{type: send, text: plain}]}")
    await speaking.start()
    for number in range(CONCURRENCY + 5):
        await speaking.put(f"{number}", user_id=f"{100 + number}", chat_id=f"{100 + number}")
    await until(lambda: len(speaking.texts) == CONCURRENCY + 5, within=WITHIN)
    await until(lambda: state.counter("models", "completion") == CONCURRENCY, within=WITHIN)
    await speaking.play("plain", user_id="200", chat_id="200")
    assert speaking.texts[-1] == "plain"
    assert state.counter("models", "completion") == CONCURRENCY


async def test_without_a_model_the_chain_goes_on_as_failed(installation: Installation) -> None:
    installation.actions(ASK_AND_SEND)
    await installation.start()
    run = await installation.play("x")
    assert states(run) == ["completed", "failed", "completed", "drop"]
    assert installation.texts[1] == "this process has no language model and no speech service"


async def test_people_who_ask_the_same_get_one_answer(speaking: Installation, state: SandboxState) -> None:
    speaking.actions(ASK_AND_SEND)
    await speaking.start()
    for _ in range(3):
        await speaking.play("same")
    assert state.counter("models", "completion") == 1
    assert speaking.texts[-1] == "Answer to: same"


async def test_a_process_that_stops_gives_its_slow_work_to_the_next(
    speaking: Installation, state: SandboxState
) -> None:
    """The call is cancelled after a short while; the task goes back to the queue at once, not at the end of a lease."""
    state.add_rule(Rule("models", Fault("timeout"), method="completion"))
    speaking.actions(ASK_AND_SEND)
    first = await speaking.start(grace=timedelta(milliseconds=100))
    run = await speaking.put("x")
    await until(lambda: state.counter("models", "completion") == 1, within=WITHIN)
    await first.stop()
    state.clear_rules()
    await speaking.start()
    assert states(await speaking.over(run)) == ["completed", "completed", "drop", "completed"]
    assert speaking.texts == ["first of x", "Answer to: x"]
