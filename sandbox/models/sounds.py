"""The sound of the simulated speech services, a tone of one second for any text, and the text they recognise, by
language.
"""

from pathlib import Path

_FOLDER = Path(__file__).with_name("tones")
TONES = {name: (_FOLDER / f"tone.{suffix}").read_bytes() for name, suffix in (("opus", "ogg"), ("mp3", "mp3"))}
TONES |= dict.fromkeys(("wav", "wav16"), (_FOLDER / "tone.wav").read_bytes())
TYPES = {"opus": "audio/ogg", "mp3": "audio/mpeg", "wav": "audio/wav", "wav16": "audio/x-wav"}

UNDERSTOOD = {"en": "Good morning. When does the lecture begin?", "ru": "Доброе утро. Когда начинается лекция?"}


def understood(language: str) -> str:
    """Return the text of any sound."""
    return UNDERSTOOD["en" if language.startswith("en") else "ru"]
