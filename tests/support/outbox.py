"""A mail server's client that keeps what it is given, for tests whose subject is not mail."""

import re

from couriers.email import MailMessage, MailRefused, MailUnavailable, MailUnclear, Phase


class Outbox:
    """Takes the place of `couriers.email.Mailer`. `is_down`: it cannot be reached; `is_refused`: it accepts no mail;
    `is_unclear`: its answer is lost.
    """

    def __init__(self) -> None:
        self.sent: list[MailMessage] = []
        self.is_down = False
        self.is_refused = False
        self.is_unclear = False

    async def send(self, message: MailMessage) -> None:
        if self.is_down:
            raise MailUnavailable(Phase.CONNECT, 0, "it is down")
        if self.is_refused:
            raise MailRefused(Phase.RECIPIENT, 550, "no such address")
        self.sent.append(message)
        if self.is_unclear:
            raise MailUnclear(Phase.CONTENT, 0, "the answer is lost")

    @property
    def codes(self) -> list[str]:
        """The codes in the mails, in order."""
        found = [re.search(r"\b[2-9A-HJKMNP-Z]{6}\b", message.text) for message in self.sent]
        return [match[0] for match in found if match]
