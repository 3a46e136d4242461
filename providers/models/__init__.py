"""Language models, speech synthesis and transcription: one interface, several services, one cache.

Guarantees: the same work is answered from files up to a maximum age; at most ten calls of a kind run at once; every
call ends within a time limit, and no answer is larger than its limit; a service that is not set up, and a program that
is not installed, is an error of the call, never of the process. Keys and texts are not logged.

Neighbours: `scenarios` asks; `cli` opens `Models` with the services that the settings name. No Redis here.
"""

from providers.models.interface import (
    AiAnswerInvalid,
    AiError,
    AiNotSetUp,
    AiRefused,
    AiUnavailable,
    Completion,
    LanguageModel,
    NotSetUp,
    Prompt,
    SoundFormat,
    Speech,
    Synthesis,
    Transcription,
)
from providers.models.models import FileCache, Models

__all__ = [
    "AiAnswerInvalid",
    "AiError",
    "AiNotSetUp",
    "AiRefused",
    "AiUnavailable",
    "Completion",
    "FileCache",
    "LanguageModel",
    "Models",
    "NotSetUp",
    "Prompt",
    "SoundFormat",
    "Speech",
    "Synthesis",
    "Transcription",
]
