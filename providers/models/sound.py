"""Converts and measures sound files with ffmpeg.

Files that people send are read as sound only: a playlist or a link inside one is not followed.
"""

from datetime import timedelta
from pathlib import Path

from providers.models.errors import AiRefused
from providers.models.interface import SoundFormat
from providers.models.programs import run_program

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
