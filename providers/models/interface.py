"""The protocols of a service, and the values that it takes and returns.

`identity` names the service, its address and its defaults: answers of one service are not those of another. `check`
raises AiNotSetUp if the service certainly cannot work; it calls nothing. The other methods raise AiError. `close` ends
the connections.
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol


class SoundFormat(StrEnum):
    """The format of a sound file. OGG_OPUS is that of voice messages."""

    OGG_OPUS = "oggopus"
    WAV = "wav"
    MP3 = "mp3"

    @property
    def suffix(self) -> str:
        return ".ogg" if self is SoundFormat.OGG_OPUS else f".{self}"


@dataclass(frozen=True, slots=True)
class Prompt:
    """A question to a language model. Fields that are empty or None have the service's defaults."""

    user: str
    system: str = ""
    model: str = ""
    temperature: float | None = None
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of a language model. `tokens`: those of question and answer, 0 if the service does not count."""

    text: str
    model: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Speech:
    """A text to be spoken. An empty voice is the service's default. `ssml`: the text is marked up."""

    text: str
    voice: str = ""
    format: SoundFormat = SoundFormat.OGG_OPUS
    ssml: bool = False


class LanguageModel(Protocol):
    """Answers questions."""

    @property
    def identity(self) -> str: ...

    def check(self) -> None: ...

    async def complete(self, prompt: Prompt) -> Completion: ...

    async def close(self) -> None: ...


class Synthesis(Protocol):
    """Makes speech from texts."""

    @property
    def identity(self) -> str: ...

    def check(self) -> None: ...

    async def synthesize(self, speech: Speech, file: Path) -> None:
        """Write the sound to `file`, in the format of `speech`."""

    async def close(self) -> None: ...


class Transcription(Protocol):
    """Makes texts from speech."""

    @property
    def identity(self) -> str: ...

    def check(self) -> None: ...

    async def transcribe(self, file: Path, language: str) -> str:
        """Return the text of a sound file, which is Ogg Opus. `language` is a tag such as `ru-RU`."""

    async def close(self) -> None: ...
