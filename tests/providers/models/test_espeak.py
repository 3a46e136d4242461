"""Speech made by espeak-ng and ffmpeg on this machine."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path

import pytest

from providers.models import AiNotSetUp, AiRefused, AiUnavailable, SoundFormat, Speech
from providers.models.programs import NICENESS, Espeak, convert, duration_of, environment, espeak_voice, run_program
from tests.providers.models.conftest import MINUTE, models_in, probe
from tests.support.waiting import until

HELLO = "Здравствуйте! Первая пара завтра в девять."


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("sound_format", "codec"),
    [(SoundFormat.OGG_OPUS, "opus"), (SoundFormat.WAV, "pcm_s16le"), (SoundFormat.MP3, "mp3")],
)
async def test_a_text_becomes_speech_in_the_wanted_format(
    tmp_path: Path, sound_format: SoundFormat, codec: str
) -> None:
    file = tmp_path / "speech"
    await Espeak("", MINUTE).synthesize(Speech(HELLO, format=sound_format), file)
    shown = probe(file)
    assert (shown["codec_name"], shown["channels"]) == (codec, 1)
    assert 1 < shown["duration"] < 10


async def spoken(directory: Path, speech: Speech) -> bytes:
    file = directory / "speech.wav"
    await Espeak("", MINUTE).synthesize(speech, file)
    return file.read_bytes()


@pytest.mark.usefixtures("programs")
async def test_the_voice_is_that_of_the_speech(tmp_path: Path) -> None:
    texts = [Speech(HELLO, voice, SoundFormat.WAV) for voice in ("", "Bys_24000", "en-us+f2")]
    assert len({await spoken(tmp_path, speech) for speech in texts}) == 3
    unknown = Speech(HELLO, "no such voice", SoundFormat.WAV)
    assert await spoken(tmp_path, unknown) == await spoken(tmp_path, texts[0])


@pytest.mark.usefixtures("programs")
async def test_marks_of_ssml_are_not_spoken(tmp_path: Path) -> None:
    pause = '<speak>Раз <break time="3s"/> два</speak>'
    file = tmp_path / "speech.wav"
    await Espeak("", MINUTE).synthesize(Speech(pause, format=SoundFormat.WAV, ssml=True), file)
    with_pause = await duration_of(file, MINUTE)
    await Espeak("", MINUTE).synthesize(Speech("Раз два", format=SoundFormat.WAV), file)
    assert with_pause > await duration_of(file, MINUTE) + timedelta(seconds=1)


@pytest.mark.usefixtures("programs")
async def test_a_text_that_looks_like_options_or_a_command_is_spoken(tmp_path: Path) -> None:
    file = tmp_path / "speech.ogg"
    await Espeak("", MINUTE).synthesize(Speech("-f /etc/passwd; $(touch hacked) `reboot`"), file)
    assert probe(file)["duration"] > 1
    assert not Path("hacked").exists()


@pytest.mark.parametrize(
    ("name", "voice"),
    [("", ""), ("ru", "ru"), ("en-us", "en-us"), ("ru+f2", "ru+f2"), ("Kin_24000", "en-us+f2"), ("Bys", "ru+m3"),
     ("-f/etc/passwd", ""), ("../ru", ""), ("alloy", ""), ("ru --stdout", "")],
)  # fmt: skip
def test_only_names_of_voices_reach_the_program(name: str, voice: str) -> None:
    assert espeak_voice(name) == voice


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is first in PATH; tests put programs there."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    return directory


def write_program(directory: Path, name: str, lines: str) -> None:
    (directory / name).write_text(f"#!/bin/sh\n{lines}\n")
    (directory / name).chmod(0o755)


async def test_a_program_that_does_not_end_is_killed_at_its_time_limit(script: Path, tmp_path: Path) -> None:
    write_program(script, "espeak-ng", "exec sleep 1000")
    with pytest.raises(AiUnavailable, match="espeak-ng did not end within") as error:
        await Espeak("", timedelta(seconds=0.5)).synthesize(Speech("x", format=SoundFormat.WAV), tmp_path / "x.wav")
    assert error.value.code == "PROGRAM_TIMEOUT"


async def test_a_program_is_killed_when_the_caller_is_cancelled(script: Path, tmp_path: Path) -> None:
    write_program(
        script, "espeak-ng", f"echo $$ > {tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid; exec sleep 99"
    )
    work = asyncio.create_task(run_program("espeak-ng", [], MINUTE))
    await until((tmp_path / "pid").exists)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert not is_running(int((tmp_path / "pid").read_text()))


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_program_has_a_lower_priority_than_messages(script: Path) -> None:
    write_program(script, "espeak-ng", f'while [ "$(nice)" -lt {NICENESS} ]; do :; done; nice')
    assert int(await run_program("espeak-ng", [], MINUTE)) >= NICENESS


async def test_a_program_gets_no_settings_of_ada(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADA_SPEECH_KEY", "secret")
    assert "ADA_SPEECH_KEY" not in environment()
    assert environment()["PATH"]


async def test_the_message_of_a_program_that_fails_is_in_the_error(script: Path) -> None:
    write_program(script, "espeak-ng", "echo first >&2; echo 'no such voice' >&2; exit 1")
    with pytest.raises(AiRefused, match="espeak-ng: no such voice"):
        await run_program("espeak-ng", [], MINUTE)


@pytest.mark.parametrize("sound_format", [SoundFormat.WAV, SoundFormat.OGG_OPUS])
async def test_without_espeak_the_call_fails_with_the_package_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sound_format: SoundFormat
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    models = models_in(tmp_path, synthesis=Espeak("", MINUTE))
    with pytest.raises(AiNotSetUp, match=r"is not installed; install the package (espeak-ng|ffmpeg)") as error:
        await models.synthesize(Speech("x", format=sound_format))
    assert error.value.code == "PROGRAM_MISSING"


@pytest.mark.usefixtures("programs")
async def test_a_conversion_ends_at_the_longest_duration(tmp_path: Path) -> None:
    """The duration that a file claims may be wrong."""
    await Espeak("", MINUTE).synthesize(Speech(HELLO, format=SoundFormat.WAV), tmp_path / "long.wav")
    longest = timedelta(seconds=1)
    await convert(tmp_path / "long.wav", tmp_path / "short.ogg", SoundFormat.OGG_OPUS, MINUTE, longest)
    assert 0.9 < probe(tmp_path / "short.ogg")["duration"] < 1.2


@pytest.mark.usefixtures("programs")
async def test_only_sound_files_are_read(tmp_path: Path) -> None:
    """A playlist could name other files of this machine, or addresses of its network."""
    sound, playlist = tmp_path / "sound.wav", tmp_path / "list"
    await Espeak("", MINUTE).synthesize(Speech("x", format=SoundFormat.WAV), sound)
    playlist.write_text("ffconcat version 1.0\nfile sound.wav\nduration 1\n")
    assert await duration_of(sound, MINUTE) > timedelta(0)
    for file in (playlist, Path(__file__)):
        with pytest.raises(AiRefused):
            await duration_of(file, MINUTE)


async def test_the_program_gets_the_voice_the_file_and_whether_the_text_is_marked_up(
    script: Path, tmp_path: Path
) -> None:
    write_program(script, "espeak-ng", f'echo "$@" > {tmp_path}/arguments; cat > {tmp_path}/text')
    file = tmp_path / "speech.wav"
    for speech, marked in (
        (Speech(HELLO, "en-us", SoundFormat.WAV, ssml=True), " -m"),
        (Speech(HELLO, "", SoundFormat.WAV), ""),
    ):
        await Espeak("ru", MINUTE).synthesize(speech, file)
        expected = f"--stdin -b 1 -v {speech.voice or 'ru'} -w {file}{marked}\n"
        assert ((tmp_path / "arguments").read_text(), (tmp_path / "text").read_text()) == (expected, HELLO)
