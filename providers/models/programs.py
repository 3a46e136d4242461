"""Programs of this machine: ffmpeg converts and measures sound files, espeak-ng speaks. They need no account and no
network.

A program runs without a shell, within a time limit, with the text on its standard input, and is killed when the caller
is cancelled. Files that people send are read as sound only: a playlist or a link inside one is not followed. A voice is
a language of espeak-ng with an optional variant (`ru`, `en-us+f2`). The names of SaluteSpeech's voices are known, so
files that were written for it are spoken here, too. Another name is the default voice.
"""

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from subprocess import PIPE

from providers.models.interface import AiNotSetUp, AiRefused, AiUnavailable, SoundFormat, Speech

PACKAGES = {"espeak-ng": "espeak-ng", "ffmpeg": "ffmpeg", "ffprobe": "ffmpeg"}
"""Program → the Debian package that has it."""

NICENESS = 10
_LONGEST_COMPLAINT = 200


async def run_program(program: str, arguments: Sequence[str], time_limit: timedelta, text: str = "") -> bytes:
    """Return what the program prints. Raises AiNotSetUp if it is not installed, AiRefused if it fails, AiUnavailable
    if it does not end in time.
    """
    process = await asyncio.create_subprocess_exec(
        installed(program), *arguments, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environment()
    )
    _lower_priority(process.pid)
    try:
        async with asyncio.timeout(time_limit.total_seconds()):
            output, complaints = await process.communicate(text.encode())
    except TimeoutError:
        seconds = time_limit.total_seconds()
        raise AiUnavailable("PROGRAM_TIMEOUT", f"{program} did not end within {seconds:g} s") from None
    finally:
        await _kill(process)
    if process.returncode != 0:
        raise AiRefused("PROGRAM_FAILED", f"{program}: {_last_line(complaints)}")
    return output


def installed(program: str) -> str:
    """Return the path of a program. Raises AiNotSetUp."""
    path = shutil.which(program)
    if path is None:
        raise AiNotSetUp("PROGRAM_MISSING", f"{program} is not installed; install the package {PACKAGES[program]}")
    return path


def environment() -> dict[str, str]:
    """Return the environment of this process without Ada's settings, because they contain secrets."""
    return {name: value for name, value in os.environ.items() if not name.startswith("ADA_")}


def _lower_priority(pid: int) -> None:
    """Lower the priority of a process: messages and answers come first on a busy machine."""
    try:
        os.setpriority(os.PRIO_PROCESS, pid, NICENESS)
    except OSError:  # it has ended, or has a lower priority already
        pass


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        try:
            process.kill()
        except ProcessLookupError:
            pass
        await process.wait()


def _last_line(complaints: bytes) -> str:
    lines = complaints.decode(errors="replace").strip().splitlines()
    return lines[-1][:_LONGEST_COMPLAINT] if lines else "it failed without a message"


_QUIET = ("-nostdin", "-hide_banner", "-loglevel", "error", "-y")
_SOUND_ONLY = (
    *("-protocol_whitelist", "file"),
    *("-format_whitelist", "ogg,wav,mp3,aac,amr,flac,mov,matroska"),
)
_ENCODERS = {
    SoundFormat.OGG_OPUS: ("-c:a", "libopus", "-b:a", "32k", "-f", "ogg"),
    SoundFormat.WAV: ("-c:a", "pcm_s16le", "-f", "wav"),
    SoundFormat.MP3: ("-c:a", "libmp3lame", "-q:a", "5", "-f", "mp3"),
}


async def convert(
    source: Path, target: Path, sound_format: SoundFormat, time_limit: timedelta, longest: timedelta | None = None
) -> None:
    """Write the sound of `source` to `target`: one channel, nothing but sound, at most `longest`. Raises AiError."""
    end = () if longest is None else ("-t", f"{longest.total_seconds():.3f}")
    sound = ("-map", "0:a:0", "-map_metadata", "-1", "-ac", "1", *end, *_ENCODERS[sound_format])
    arguments = (*_QUIET, *_SOUND_ONLY, "-i", f"file:{source}", *sound, f"file:{target}")
    await run_program("ffmpeg", arguments, time_limit)


async def duration_of(file: Path, time_limit: timedelta) -> timedelta:
    """Return how long a sound file is. Raises AiRefused if it is none, AiNotSetUp if ffprobe is not installed."""
    shown = ("-show_entries", "format=duration", "-of", "default=nw=1:nk=1")
    output = await run_program("ffprobe", ("-loglevel", "error", *_SOUND_ONLY, *shown, f"file:{file}"), time_limit)
    try:
        return timedelta(seconds=float(output))
    except (ValueError, OverflowError):
        raise AiRefused("SOUND_INVALID", "the file is not a sound file with a known duration") from None


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
