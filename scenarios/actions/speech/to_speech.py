"""Turns text into speech (C-74)."""

from core.errors import Invalid
from providers.models import SoundFormat, Speech
from scenarios.context import Context
from scenarios.context.arguments import Seen, count_of, duration_of, flag_of, invalid, text_of
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.schema import ActionType, Field, types

MAX_TEXT_LENGTH = 4000
_FORMATS = {"": SoundFormat.OGG_OPUS, "opus": SoundFormat.OGG_OPUS, **{str(one): one for one in SoundFormat}}


async def execute(context: Context) -> Ending:
    """Make speech of a text. Raises Invalid, AiError."""
    seen = context.prepared.seen
    speech = Speech(_text(seen), text_of(seen, "voice"), _format(seen), flag_of(seen, "ssml"))
    file = await context.services.models.synthesize(speech, duration_of(seen, "cache_max_age"))
    return completed({"file_path": str(file)})


def _text(seen: Seen) -> str:
    text, longest = text_of(seen, "text_to_speech"), count_of(seen, "max_text_length") or MAX_TEXT_LENGTH
    if len(text) > longest:
        detail = f"the text has {len(text)} characters, more than {longest}"
        raise Invalid("TEXT_TOO_LONG", detail, "text_to_speech")
    return text


def _format(seen: Seen) -> SoundFormat:
    written = text_of(seen, "format")
    if written not in _FORMATS:
        raise invalid("format", written, "oggopus, wav or mp3")
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
