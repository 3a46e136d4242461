"""Stands for a service that is not set up: every call raises AiNotSetUp, and the process goes on (C-86)."""

from pathlib import Path

from providers.models.errors import AiNotSetUp
from providers.models.interface import Completion, Prompt, Speech


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
