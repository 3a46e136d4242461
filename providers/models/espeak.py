"""Speech synthesis on this machine, by espeak-ng and ffmpeg: needs no account and no network.

A voice is a language of espeak-ng with an optional variant (`ru`, `en-us+f2`). The names of SaluteSpeech's voices are
known, so files that were written for it are spoken here, too. Another name is the default voice.
"""

import re
import tempfile
from datetime import timedelta
from pathlib import Path

from providers.models.interface import SoundFormat, Speech
from providers.models.programs import installed, run_program
from providers.models.sound import convert

DEFAULT_VOICE = "ru"
_VOICE = re.compile(r"[a-z]{2,3}(-[a-zA-Z0-9]{1,8}){0,3}(\+[a-zA-Z0-9]{1,12})?")
_SALUTE_VOICES = {
    "nec": "ru+f2",
    "bys": "ru+m3",
    "may": "ru+f3",
    "tur": "ru+m1",
    "ost": "ru+f4",
    "pon": "ru+m7",
    "kin": "en-us+f2",
}


class Espeak:
    """Implements `Synthesis`."""

    def __init__(self, voice: str, time_limit: timedelta) -> None:
        self._voice, self._time_limit = voice or DEFAULT_VOICE, time_limit

    @property
    def identity(self) -> str:
        return f"espeak-ng {self._voice}"

    def check(self) -> None:
        for program in ("espeak-ng", "ffmpeg"):
            installed(program)

    async def synthesize(self, speech: Speech, file: Path) -> None:
        if speech.format is SoundFormat.WAV:
            await self._speak(speech, file)
            return
        with tempfile.TemporaryDirectory(prefix="ada-speech-") as directory:
            spoken = Path(directory) / "speech.wav"
            await self._speak(speech, spoken)
            await convert(spoken, file, speech.format, self._time_limit)

    async def _speak(self, speech: Speech, file: Path) -> None:
        """Speak a text into a file. The text goes to the standard input, so it is on no command line."""
        voice = espeak_voice(speech.voice) or self._voice
        arguments = ["--stdin", "-b", "1", "-v", voice, "-w", str(file), *(["-m"] if speech.ssml else [])]
        await run_program("espeak-ng", arguments, self._time_limit, speech.text)

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


def espeak_voice(name: str) -> str:
    """Return the voice of espeak-ng that a name means; "" if it means none."""
    known = _SALUTE_VOICES.get(name.partition("_")[0].casefold())
    if known is not None:
        return known
    return name if _VOICE.fullmatch(name) else ""
