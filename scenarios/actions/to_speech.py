"""Turns text into speech (C-74)."""

from scenarios.schema import ActionType, Field, types

ACTION = ActionType(
    name="to_speech",
    help="Makes a sound file from a text.",
    fields=(
        Field("text_to_speech", types.TEXT, "The text."),
        Field("voice", types.TEXT, "The name of the voice."),
        Field("format", types.choice("oggopus", "opus", "wav", "mp3"), "The format of the file."),
        Field("ssml", types.FLAG, "Whether the text is SSML.", default=False),
        Field("max_text_length", types.WHOLE, "The action fails for a longer text."),
    ),
    returns={"file_path": "the file, for the next `send`"},
)
