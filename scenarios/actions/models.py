"""Actions that use language models and speech: `completion`, which Coreness calls `gigachat`, speech into text, text
into speech (C-74, C-75, C-78).

Speech is a sound file of the bot's folder, one of Telegram by its id, or that of the event. A file of Telegram is
downloaded to a temporary folder, at most 20 MB, which is Telegram's own limit for bots.
"""

import io
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta, tzinfo
from pathlib import Path
from typing import Annotated, Any

from msgspec.structs import replace

from core.errors import Invalid, NotFound
from core.model.content import ParseMode
from core.model.text.text_entities import marked, read_markdown
from core.model.user_files import inner_path
from couriers.telegram_bot import CHANNELS_OF_IDS, BotCallFailed, BotCallRefused
from providers.models import AiUnavailable, Prompt, SoundFormat, Speech
from scenarios.bot.data import Data
from scenarios.context import Context
from scenarios.engine import Ending, completed
from scenarios.schema import ActionType, Attributes, Seen, conversion, types
from scenarios.schema.attributes import Anything, Count, Duration, Flag, Number, Text
from scenarios.words import sentence

MOST_BYTES = 20 * 2**20
_SPOKEN = ("voice", "audio", "video_note")

MAX_AUDIO_DURATION = timedelta(minutes=10)


@asynccontextmanager
async def recording(context: Context, name: str, file_id: str, attachments: object) -> AsyncIterator[Path]:
    """Yield the file, until the end of the block: the one with this name, or this id, or the first sound among the
    attachments. Raises Invalid, NotFound, AiUnavailable.
    """
    if name:
        yield _local(context, name)
        return
    file_id = file_id or _id_in(attachments)
    with tempfile.TemporaryDirectory(prefix="ada-speech-") as directory:
        file = Path(directory) / "recording"
        await _download(context, file_id, file)
        yield file


def _local(context: Context, name: str) -> Path:
    path = inner_path(context.folders[0] / name, *context.folders)
    if path is None:
        raise Invalid("AUDIO_FILE_OUTSIDE", sentence("outside_bot_folder", name=name), "audio_file")
    if not path.is_file():
        raise NotFound("AUDIO_FILE_NOT_FOUND", sentence("no_file_bot_folder", name=name), "audio_file")
    if path.stat().st_size > MOST_BYTES:
        raise _too_large()
    return path


def _id_in(attachments: object) -> str:
    """Return the id of the first attachment that is a voice message or another sound."""
    found = [one for one in attachments if isinstance(one, Mapping)] if isinstance(attachments, list) else []
    spoken = [one for one in found if one.get("type") in _SPOKEN or str(one.get("mime_type")).startswith("audio/")]
    if not spoken or not spoken[0].get("file_id"):
        raise Invalid("AUDIO_MISSING", sentence("no_audio_file_no_audio_file_id"))
    return str(spoken[0]["file_id"])


async def _download(context: Context, file_id: str, target: Path) -> None:
    telegram = context.services.telegram
    if telegram is None or context.channel not in CHANNELS_OF_IDS:
        raise Invalid("AUDIO_NOT_FETCHABLE", sentence("files_channel_cannot_fetched", channel=context.channel))
    try:
        found = await telegram.call("getFile", file_id=file_id)
        if found.get("file_size", 0) > MOST_BYTES or not found.get("file_path"):
            raise _too_large()
        with _Bounded(target, "w") as file:
            await telegram.download(found["file_path"], file)
    except BotCallRefused:
        raise NotFound("AUDIO_FILE_NOT_FOUND", sentence("telegram_has_no_file"), "audio_file_id") from None
    except BotCallFailed:
        raise AiUnavailable("AUDIO_UNAVAILABLE", sentence("telegram_did_not_send")) from None


class _Bounded(io.FileIO):
    """A file that does not grow beyond the limit."""

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > MOST_BYTES:
            raise _too_large()
        return super().write(data)


def _too_large() -> Invalid:
    return Invalid("AUDIO_TOO_LARGE", sentence("sound_file_larger_than", most=MOST_BYTES // 2**20))


class FromSpeechAttributes(Attributes, frozen=True):
    """`attachments`: those of the event."""

    audio_file: Annotated[str, types.FILE, conversion.text, Seen("The sound file, in the bot's folder.")] = ""
    audio_file_id: Annotated[Text, Seen("The id of a file of Telegram.")] = ""
    language: Annotated[Text, Seen("The language, for example `en-US`.")] = "ru-RU"
    max_audio_duration: Annotated[Duration, Seen("The action fails for longer speech.")] = MAX_AUDIO_DURATION
    cache_max_age: Annotated[Duration, Seen("How old the text of the same file may be; `0s`: always a new one.")] = None
    attachments: Annotated[Anything, Seen()] = None


async def execute_from_speech(context: Context, written: FromSpeechAttributes) -> Ending:
    """Return the text of a recording. A person is its author, so later actions escape it. Raises Refused, AiError."""
    longest = written.max_audio_duration or MAX_AUDIO_DURATION
    async with recording(context, written.audio_file, written.audio_file_id, written.attachments) as file:
        text = await context.services.models.transcribe(file, written.language, longest, written.cache_max_age)
    return completed({"speech_to_text": text}, from_person=["speech_to_text"])


FROM_SPEECH = ActionType(
    name="from_speech",
    help="Makes a text from a sound file, by default from the voice message or audio of the event.",
    attributes=FromSpeechAttributes,
    returns={"speech_to_text": "the text"},
    execute=execute_from_speech,
    from_person=("speech_to_text",),
    tube="scenarios.speech",
)


MAX_TEXT_LENGTH = 4000
_FORMATS = {"opus": SoundFormat.OGG_OPUS, **{str(one): one for one in SoundFormat}}


def _format(value: Data, name: str, zone: tzinfo) -> SoundFormat | None:
    written = conversion.text(value)
    if written and written not in _FORMATS:
        raise conversion.invalid(name, written, sentence("oggopus_wav_mp"))
    return _FORMATS.get(written or "")


class ToSpeechAttributes(Attributes, frozen=True):
    text_to_speech: Annotated[Text, Seen("The text.")] = ""
    voice: Annotated[Text, Seen("The name of the voice; which there are, depends on the speech service.")] = ""
    format: Annotated[
        SoundFormat,
        types.choice("oggopus", "opus", "wav", "mp3"),
        _format,
        Seen("The format of the file. `oggopus` is sent as a voice message."),
    ] = SoundFormat.OGG_OPUS
    ssml: Annotated[Flag, Seen("Whether the text is SSML.")] = False
    max_text_length: Annotated[Count, Seen("The action fails for a longer text.", default=MAX_TEXT_LENGTH)] = None
    cache_max_age: Annotated[Duration, Seen("How old a file with the same speech may be; `0s`: always a new one.")] = (
        None
    )


async def execute_to_speech(context: Context, written: ToSpeechAttributes) -> Ending:
    """Make speech of a text. Raises Invalid, AiError."""
    text, longest = written.text_to_speech, written.max_text_length or MAX_TEXT_LENGTH
    if len(text) > longest:
        detail = sentence("text_has_characters_more", length=len(text), most=longest)
        raise Invalid("TEXT_TOO_LONG", detail, "text_to_speech")
    speech = Speech(text, written.voice, written.format, written.ssml)
    file = await context.services.models.synthesize(speech, written.cache_max_age)
    return completed({"file_path": str(file)})


TO_SPEECH = ActionType(
    name="to_speech",
    help="Makes a sound file from a text.",
    attributes=ToSpeechAttributes,
    returns={"file_path": "the file, for the `attachment` of the next `send`"},
    execute=execute_to_speech,
    samples={"file_path": "speech.ogg"},
    tube="scenarios.speech",
)


_TEXTS = ("response_text", "response_text_html", "response_text_md2")


class CompletionAttributes(Attributes, frozen=True):
    system_prompt: Annotated[Text, Seen("Instructions for the model.", may_be_empty=True)] = ""
    user_message: Annotated[Text, Seen("The question.")] = ""
    model: Annotated[Text, Seen("The name of the model.")] = ""
    temperature: Annotated[Number, Seen("How much answers vary.")] = None
    max_tokens: Annotated[Count, Seen("How long the answer may be.")] = None
    cache_max_age: Annotated[Duration, Seen("How old an answer to the same may be; `0s`: always a new one.")] = None


async def execute_completion(context: Context, written: CompletionAttributes) -> Ending:
    """Complete a prompt. The answer depends on what a person wrote, so later actions escape it as if a person had
    written it.

    Raises Invalid, AiError.
    """
    if not written.user_message:
        raise Invalid("TEXT_EMPTY", sentence("user_message_empty"), "user_message")
    prompt = Prompt(
        user=written.user_message,
        system=written.system_prompt,
        model=written.model,
        temperature=written.temperature,
        max_tokens=written.max_tokens,
    )
    answer = await context.services.models.complete(prompt, written.cache_max_age)
    text, entities = read_markdown(answer.text)
    marks = (marked(text, entities, mode) for mode in (ParseMode.HTML, ParseMode.MARKDOWN_V2))
    texts = dict(zip(_TEXTS, (answer.text, *marks), strict=True))
    return completed({**texts, "model_used": answer.model, "tokens_used": answer.tokens}, from_person=_TEXTS)


COMPLETION = ActionType(
    name="completion",
    help="Asks a language model.",
    attributes=CompletionAttributes,
    returns={
        "response_text": "the answer, in Markdown as models write it",
        "response_text_html": "the same for a text in HTML",
        "response_text_md2": "the same for a text with `parse_mode: MarkdownV2`",
        "model_used": "the name of the model",
        "tokens_used": "how many tokens it took",
    },
    execute=execute_completion,
    samples={"tokens_used": 0},
    from_person=_TEXTS,
    tube="scenarios.models",
)

GIGACHAT = replace(
    COMPLETION,
    name="gigachat",
    alias_of="completion",
    help="The same as `completion`: it asks the model of ADA_MODEL_…, which may be GigaChat or another one.",
)
