"""Turns speech into text (C-75)."""

from scenarios.schema import ActionType, Field, types

ACTION = ActionType(
    name="from_speech",
    help="Makes a text from a sound file, by default from the voice message or audio of the event.",
    fields=(
        Field("audio_file", types.FILE, "The sound file, in the bot's folder."),
        Field("audio_file_id", types.TEXT, "The id of a file of the provider."),
        Field("language", types.TEXT, "The language, for example `ru-RU`."),
        Field("max_audio_duration", types.DURATION, "The action fails for longer speech."),
    ),
    returns={"speech_to_text": "the text"},
)
