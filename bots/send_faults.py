"""Why a reply could not be sent now. The sender tries again: neither is an end."""

from datetime import timedelta

from core.errors import AdaError


class SendLater(AdaError):
    """The provider asks for a pause before the next message. Nothing was sent."""

    def __init__(self, after: timedelta) -> None:
        super().__init__(f"the provider asks for a pause of {after}")
        self.after = after


class NotSent(AdaError):
    """The provider could not be reached, or did not answer as expected; whether it has sent the message is unknown."""
