"""The answers of the mail server, command by command: the hooks that aiosmtpd calls."""

import asyncio
import time
from collections import Counter, deque
from hmac import compare_digest
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from sandbox.events import ANY, Fault
from sandbox.mail.received_mail import read_mail
from sandbox.rate_limit import RateLimit
from sandbox.state import SandboxState

NEWEST = 100
"""Number of mails that are kept as they were transferred."""

OK = "250 2.0.0 OK"
SIGN_IN_FIRST = "530 5.7.0 Authentication required"

SIGN_IN_ANSWERS = {
    "sign_in_refused": "535 5.7.8 Authentication credentials invalid",
    "sign_in_deferred": "454 4.7.0 Temporary authentication failure",
}
SENDER_ANSWERS = {
    "sender_refused": "550 5.7.1 Sender address rejected: not owned by user",
    "rate_limit": "451 4.7.0 Too many messages, slow down",
    "utf8_refused": "550 5.6.7 Addresses in other letters are not accepted",
}
RECIPIENT_ANSWERS = {
    "refused": "550 5.1.1 No such user here",
    "mailbox_full": "452 4.2.2 Mailbox full",
    "greylisted": "451 4.7.1 Greylisted, please try again later",
    "shutting_down": "421 4.3.2 Service shutting down",
    "flood_detected": "450 4.7.28 Too many mails of this kind",
}
RECIPIENT_FAULTS = frozenset({*RECIPIENT_ANSWERS, "rcpt_answer", "rcpt_silence", "disconnect_before"})
CONTENT_ANSWERS = {
    "content_refused": "554 5.7.1 Message rejected as spam",
    "busy": "451 4.3.0 Temporary failure, nothing was stored",
    "data_shutting_down": "421 4.3.2 Service shutting down",
}
CONTENT_FAULTS = frozenset({*CONTENT_ANSWERS, "stored_then_cut", "cut_after_data", "stored_then_silence", "timeout"})


class Handler:
    """One per server. Its methods are called by aiosmtpd, by name."""

    def __init__(self, state: SandboxState, username: str, password: str) -> None:
        self._state = state
        self._credentials = (username.encode(), password.encode())
        self._rate = RateLimit()
        self.contents: deque[bytes] = deque(maxlen=NEWEST)
        self.received: dict[int, bytes] = {}  # the newest mails, by the number of their message
        self._refusals: Counter[str] = Counter()  # by address: how often greylisting has refused it

    def sign_in(self, _: SMTP, session: Session, envelope: Envelope, mechanism: str, given: Any) -> AuthResult:
        self._state.count("email", "sign-ins")
        fault = self._state.fault("email", ANY, "AUTH", SIGN_IN_ANSWERS)
        if fault is not None:
            return AuthResult(success=False, handled=False, message=SIGN_IN_ANSWERS[fault.name])
        is_right = isinstance(given, LoginPassword) and all(map(compare_digest, given, self._credentials))
        return AuthResult(success=is_right, handled=False)

    def handle_STARTTLS(self, server: SMTP, session: Session, envelope: Envelope) -> bool:  # noqa: N802 - aiosmtpd's name
        self._state.count("email", "encrypted")
        return True

    async def handle_MAIL(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if not session.authenticated:
            return SIGN_IN_FIRST
        fault = self._state.fault("email", ANY, "MAIL", SENDER_ANSWERS)
        if fault is not None and self._is_refused(fault, options):
            return self._refuse(SENDER_ANSWERS[fault.name])
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return OK

    def _is_refused(self, fault: Fault, options: list[str]) -> bool:
        match fault.name:
            case "rate_limit":
                return self._is_too_fast(fault)
            case "utf8_refused":
                return "SMTPUTF8" in options
        return True

    def _is_too_fast(self, fault: Fault) -> bool:
        return not self._rate.accepts(fault.value or 0, time.monotonic())

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        fault = self._state.fault("email", address, "RCPT", RECIPIENT_FAULTS)
        if fault is not None and not self._has_come_again(address, fault):
            return await self._refuse_recipient(server, fault)
        envelope.rcpt_tos.append(address)
        return OK

    def _has_come_again(self, address: str, fault: Fault) -> bool:
        """Return whether greylisting has refused this address often enough."""
        self._refusals[address] += 1
        return fault.name == "greylisted" and self._refusals[address] > (fault.value or 1)

    async def _refuse_recipient(self, server: SMTP, fault: Fault) -> str:
        match fault.name:
            case "disconnect_before":
                await disconnect(server)
            case "rcpt_silence":
                await asyncio.Event().wait()
            case "rcpt_answer":
                return self._refuse(f"{fault.value} as the rule says")
            case "shutting_down":
                await self._shut_down(server, RECIPIENT_ANSWERS[fault.name])
        return self._refuse(RECIPIENT_ANSWERS[fault.name])

    async def _shut_down(self, server: SMTP, answer: str) -> None:
        await server.push(self._refuse(answer))
        await disconnect(server)

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's name
        self._state.count("email", "transfers")
        self.contents.append(as_bytes(envelope.content))
        for address in envelope.rcpt_tos:
            fault = self._state.fault("email", address, "DATA", CONTENT_FAULTS)
            if fault is not None and fault.name == "data_shutting_down":
                await self._shut_down(server, CONTENT_ANSWERS[fault.name])
            if fault is not None and fault.name in CONTENT_ANSWERS:
                return self._refuse(CONTENT_ANSWERS[fault.name])
            if fault is None or fault.name.startswith("stored"):
                self._store(address, envelope)
            if fault is not None:
                await (disconnect(server) if "cut" in fault.name else asyncio.Event().wait())
        return OK

    def _store(self, address: str, envelope: Envelope) -> None:
        content = as_bytes(envelope.content)
        mail = read_mail(content)
        number = self._state.receive(
            "email", address, mail.text, reference=mail.message_id, subject=mail.subject
        ).number
        self.received[number] = content
        if len(self.received) > NEWEST:
            del self.received[min(self.received)]
        self._state.count("email", "messages")

    def _refuse(self, answer: str) -> str:
        self._state.count("email", "refused")
        return answer


def as_bytes(content: bytes | str | None) -> bytes:
    """Return the content of an envelope; aiosmtpd can be set up to decode it, which it is not here."""
    return content if isinstance(content, bytes) else (content or "").encode()


async def disconnect(server: SMTP) -> None:
    """Close the connection. Does not return: aiosmtpd cancels the handler of a connection that ended."""
    if isinstance(server.transport, asyncio.Transport):
        server.transport.close()
    await asyncio.Event().wait()
