"""Turns speech into text (C-75)."""

from datetime import timedelta
from typing import Annotated

from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.schema import ActionType, Attributes, Seen, conversion, types
from scenarios.schema.attributes import Anything, Duration, Text
from scenarios.telegram.recordings import recording

MAX_AUDIO_DURATION = timedelta(minutes=10)


class FromSpeechAttributes(Attributes, frozen=True):
    """`attachments`: those of the event."""

    audio_file: Annotated[str, types.FILE, conversion.text, Seen("The sound file, in the bot's folder.")] = ""
    audio_file_id: Annotated[Text, Seen("The id of a file of Telegram.")] = ""
    language: Annotated[Text, Seen("The language, for example `en-US`.")] = "ru-RU"
    max_audio_duration: Annotated[Duration, Seen("The action fails for longer speech.")] = MAX_AUDIO_DURATION
    cache_max_age: Annotated[Duration, Seen("How old the text of the same file may be; `0s`: always a new one.")] = None
    attachments: Annotated[Anything, Seen()] = None


async def execute(context: Context, written: FromSpeechAttributes) -> Ending:
    """Return the text of a recording. A person is its author, so later actions escape it. Raises Refused, AiError."""
    longest = written.max_audio_duration or MAX_AUDIO_DURATION
    async with recording(context, written.audio_file, written.audio_file_id, written.attachments) as file:
        text = await context.services.models.transcribe(file, written.language, longest, written.cache_max_age)
    return completed({"speech_to_text": text}, from_person=["speech_to_text"])


ACTION = ActionType(
    name="from_speech",
    help="Makes a text from a sound file, by default from the voice message or audio of the event.",
    attributes=FromSpeechAttributes,
    returns={"speech_to_text": "the text"},
    execute=execute,
    from_person=("speech_to_text",),
    tube="scenarios.speech",
)
