"""Turns speech into text (C-75)."""

from datetime import timedelta

from scenarios.context import Context
from scenarios.context.arguments import duration_of, text_of
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.schema import ActionType, Field, types
from scenarios.telegram.recordings import recording

LANGUAGE = "ru-RU"
MAX_AUDIO_DURATION = timedelta(minutes=10)


async def execute(context: Context) -> Ending:
    """Return the text of a recording. A person is its author, so later actions escape it. Raises Refused, AiError."""
    seen = context.prepared.seen
    language = text_of(seen, "language") or LANGUAGE
    longest = duration_of(seen, "max_audio_duration") or MAX_AUDIO_DURATION
    max_age = duration_of(seen, "cache_max_age")
    async with recording(context) as file:
        text = await context.services.models.transcribe(file, language, longest, max_age)
    return completed({"speech_to_text": text}, from_person=["speech_to_text"])


ACTION = ActionType(
    name="from_speech",
    help="Makes a text from a sound file, by default from the voice message or audio of the event.",
    fields=(
        Field("audio_file", types.FILE, "The sound file, in the bot's folder."),
        Field("audio_file_id", types.TEXT, "The id of a file of Telegram."),
        Field("language", types.TEXT, "The language, for example `en-US`.", default=LANGUAGE),
        Field("max_audio_duration", types.DURATION, "The action fails for longer speech.", default="10m"),
        Field("cache_max_age", types.DURATION, "How old the text of the same file may be; `0s`: always a new one."),
    ),
    returns={"speech_to_text": "the text"},
    execute=execute,
    tube="scenarios.speech",
)
