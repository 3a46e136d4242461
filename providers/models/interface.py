"""Interface of models and speech services: protocols, the values that they take and return, errors; a service that is
not set up, which raises AiNotSetUp at every call, while the process goes on (C-86).

AiError
├── AiNotSetUp        no service is chosen, or a program is missing; the text says what to do
├── AiRefused         refused for good: by the service, or because it cannot do what was asked
├── AiUnavailable     no connection, no answer in time, or 429 and 5xx in every attempt; later it may succeed
└── AiAnswerInvalid   the answer is not what the interface promises, or too large
"""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from core.errors import AdaError
from core.sentence import Text


class AiError(AdaError):
    """The work was not done. `code` is stable and upper case."""

    def __init__(self, code: str, detail: Text) -> None:
        super().__init__(str(detail))
        self.code = code
        self.said = detail


class AiNotSetUp(AiError):
    """No service is chosen, or a program is not installed. The text names the remedy."""


class AiRefused(AiError):
    """The service refuses this work for good, or cannot do it."""


class AiUnavailable(AiError):
    """The service did not do the work now; a later call may succeed."""


class AiAnswerInvalid(AiError):
    """The answer is not what the interface of the service promises, or too large."""


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


class NotSetUp:
    """Implements LanguageModel, Synthesis and Transcription. `remedy`: what the operator can do."""

    identity = "none"

    def __init__(self, code: str, remedy: str) -> None:
        self._code, self._remedy = code, remedy

    def check(self) -> None:
        raise self._error()

    async def complete(self, prompt: Prompt) -> Completion:
        raise self._error()

    async def synthesize(self, speech: Speech, file: Path) -> None:
        raise self._error()

    async def transcribe(self, file: Path, language: str) -> str:
        raise self._error()

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def _error(self) -> AiNotSetUp:
        return AiNotSetUp(self._code, self._remedy)
