"""Errors of a model or a speech service.

AiError
├── AiNotSetUp        no service is chosen, or a program is missing; the text says what to do
├── AiRefused         refused for good: by the service, or because it cannot do what was asked
├── AiUnavailable     no connection, no answer in time, or 429 and 5xx in every attempt; later it may succeed
└── AiAnswerInvalid   the answer is not what the interface promises, or too large
"""

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
