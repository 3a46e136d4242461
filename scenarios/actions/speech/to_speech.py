"""Turns text into speech (C-74)."""

from datetime import tzinfo
from typing import Annotated

from core.errors import Invalid
from providers.models import SoundFormat, Speech
from scenarios.bot.data import Data
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.schema import ActionType, Attributes, Seen, conversion, types
from scenarios.schema.attributes import Count, Duration, Flag, Text
from scenarios.words import sentence

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


async def execute(context: Context, written: ToSpeechAttributes) -> Ending:
    """Make speech of a text. Raises Invalid, AiError."""
    text, longest = written.text_to_speech, written.max_text_length or MAX_TEXT_LENGTH
    if len(text) > longest:
        detail = sentence("text_has_characters_more", length=len(text), most=longest)
        raise Invalid("TEXT_TOO_LONG", detail, "text_to_speech")
    speech = Speech(text, written.voice, written.format, written.ssml)
    file = await context.services.models.synthesize(speech, written.cache_max_age)
    return completed({"file_path": str(file)})


ACTION = ActionType(
    name="to_speech",
    help="Makes a sound file from a text.",
    attributes=ToSpeechAttributes,
    returns={"file_path": "the file, for the `attachment` of the next `send`"},
    execute=execute,
    samples={"file_path": "speech.ogg"},
    tube="scenarios.speech",
)
