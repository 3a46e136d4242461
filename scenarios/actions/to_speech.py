"""Turns text into speech (C-74)."""

from collections.abc import Mapping
from typing import Any

from core.ai import AiError, SoundFormat, Speech
from core.errors import Invalid, Refused
from scenarios.context import Context
from scenarios.endings import completed, failed
from scenarios.engine import Ending
from scenarios.field_values import count_of, duration_of, flag_of, text_of
from scenarios.schema import ActionType, Field, types

MAX_TEXT_LENGTH = 4000
_FORMATS = {"": SoundFormat.OGG_OPUS, "opus": SoundFormat.OGG_OPUS, **{str(one): one for one in SoundFormat}}


async def execute(context: Context) -> Ending:
    seen = context.prepared.seen
    try:
        speech = Speech(text_of(seen, "text_to_speech"), text_of(seen, "voice"), _format(seen), flag_of(seen, "ssml"))
        longest = count_of(seen, "max_text_length") or MAX_TEXT_LENGTH
        if len(speech.text) > longest:
            return failed(f"TEXT_TOO_LONG: the text has {len(speech.text)} characters, more than {longest}")
        file = await context.services.models.synthesize(speech, duration_of(seen, "cache_max_age"))
    except (AiError, Refused) as error:
        return failed(f"{error.code}: {error}")
    return completed({"file_path": str(file)})


def _format(seen: Mapping[str, Any]) -> SoundFormat:
    written = text_of(seen, "format")
    if written not in _FORMATS:
        raise Invalid("FORMAT_UNKNOWN", f"the format must be oggopus, wav or mp3, but is {written[:50]!r}", "format")
    return _FORMATS[written]


ACTION = ActionType(
    name="to_speech",
    help="Makes a sound file from a text.",
    fields=(
        Field("text_to_speech", types.TEXT, "The text."),
        Field("voice", types.TEXT, "The name of the voice; which there are, depends on the speech service."),
        Field(
            "format",
            types.choice("oggopus", "opus", "wav", "mp3"),
            "The format of the file. `oggopus` is sent as a voice message.",
            default="oggopus",
        ),
        Field("ssml", types.FLAG, "Whether the text is SSML.", default=False),
        Field("max_text_length", types.WHOLE, "The action fails for a longer text.", default=MAX_TEXT_LENGTH),
        Field("cache_max_age", types.DURATION, "How old a file with the same speech may be; `0s`: always a new one."),
    ),
    returns={"file_path": "the file, for the `attachment` of the next `send`"},
    execute=execute,
    tube="scenarios.speech",
)
