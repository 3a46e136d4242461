"""SMS through Kannel's sendsms over HTTP.

Before: core.courier.runtime. After: the gateway; then its delivery reports, which come to `Message.report`. The table
of
answers is in `answers.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import aiohttp
from yarl import URL

from core.courier import NEVER, Halted, Message, Outcome, Reason, Rejected, SetupError
from couriers.sms import answers
from couriers.sms.numbers import e164
from couriers.sms.parts import coding_of, parts

NO_NUMBER = Rejected(Reason.RECIPIENT_UNREACHABLE, "not a phone number")
EVERY_REPORT = "31"  # delivered 1, failed 2, buffered 4, accepted 8, rejected 16
# Kannel fills these in: which of the reports, the SMS centre's id of the message, and the centre's own words.
REPORTED = "status=%d&id=%F&answer=%A"


@dataclass(frozen=True)
class Settings:
    """The fields are ADA_SMS_URL and so on; the sender is ADA_SMS_FROM."""

    url: str  # of sendsms
    username: str
    password: str = field(repr=False)
    sender: str = field(metadata={"name": "from"})
    callback_url: str | None = None  # where this house is for the gateway; the runtime makes `Message.report` of it
    most_parts: int = 255  # Kannel's `max-messages`, which is 10 where nothing is set: it cuts off the rest unsaid
    timeout: timedelta = timedelta(seconds=30)  # for one request; after it the outcome is unknown

    def address(self) -> URL:
        """Where sendsms is. Raises SetupError when `url` is no address."""
        try:
            address = URL(self.url)
        except ValueError as error:
            raise SetupError(f"ADA_SMS_URL is no address: {error}") from None
        if address.scheme not in ("http", "https") or not address.host:
            raise SetupError("ADA_SMS_URL is no address: it begins with http:// or https://")
        return address


class Sms:
    """A courier of core.courier.interface. Safe for many attempts at once."""

    channel = "sms"
    batch = 1
    parcel = 100
    remembers = NEVER

    def __init__(self, settings: Settings, session: aiohttp.ClientSession) -> None:
        self._settings, self._session = settings, session
        self._url = settings.address().update_query(username=settings.username, password=settings.password)
        self.account = f"{settings.username}@{self._url.host_port_subcomponent}"

    async def attempt(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        return [await self._attempt(message) for message in messages]

    async def _attempt(self, message: Message) -> Outcome:
        number = e164(message.address)
        if number is None:
            return NO_NUMBER
        if (needed := parts(message.text)) > self._settings.most_parts:
            return Rejected(
                Reason.CONTENT_REFUSED, f"{needed} parts, and the gateway joins {self._settings.most_parts}"
            )
        return await self._asked(fields(message, number) | {"from": self._settings.sender})

    async def _asked(self, parameters: dict[str, str]) -> Outcome:
        try:
            return answers.read(*await self.ask(parameters))
        except (aiohttp.ClientError, OSError) as error:
            return answers.failed(error)

    async def ask(self, parameters: dict[str, str]) -> tuple[int, str]:
        """Status and body of one request. The password is part of its address, which nothing here shows."""
        async with self._session.get(self._url.update_query(parameters), allow_redirects=False) as answer:
            return answer.status, await answer.text(errors="replace")

    async def close(self) -> None:
        await self._session.close()


def fields(message: Message, number: str) -> dict[str, str]:
    """What sendsms is told about a message."""
    told = {"to": number, "text": message.text, "charset": "UTF-8", "coding": str(int(coding_of(message.text)))}
    if not message.report:
        return told
    return told | {"dlr-mask": EVERY_REPORT, "dlr-url": report_address(message.report)}


def report_address(report: str) -> str:
    """The address with Kannel's escapes; a percent sign of its own is doubled, so that Kannel leaves it alone."""
    return report.replace("%", "%%") + ("&" if "?" in report else "?") + REPORTED


async def open(settings: Settings, directory: Path) -> Sms:  # noqa: A001 - the port's name: couriers are opened
    """Check the gateway and return the courier; nothing is kept in `directory`.

    Raises SetupError when the gateway cannot be reached or does not take the account.
    """
    settings.address()
    courier = Sms(settings, _session(settings.timeout))
    try:
        await _check(courier)
    except BaseException:
        await courier.close()
        raise
    return courier


def _session(timeout: timedelta) -> aiohttp.ClientSession:
    """Each request has its own connection: one that was kept may have gone, and then nobody knows what was sent."""
    seconds = timeout.total_seconds()
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(force_close=True, limit=32),
        timeout=aiohttp.ClientTimeout(total=seconds, connect=seconds / 3),
        middlewares=[_once],
    )


class AnswerLost(aiohttp.ClientError):
    """The connection ended between request and answer."""


async def _once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep aiohttp from repeating the request.

    It does so with every GET whose connection ends before the answer (aiohttp/client.py, IDEMPOTENT_METHODS), and here
    that is a second SMS. An error that it does not know is not repeated.
    """
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise AnswerLost(type(error).__name__) from error


async def _check(courier: Sms) -> None:
    """Ask for a message to nobody: Kannel looks at the account first, and then misses the number."""
    try:
        outcome = answers.read(*await courier.ask({}))
    except (aiohttp.ClientError, OSError, ValueError) as error:
        # Not the error's own text: it can hold the address, and with it the password.
        raise SetupError(f"the gateway cannot be reached ({type(error).__name__}): check ADA_SMS_URL") from None
    if isinstance(outcome, Halted):
        raise SetupError(outcome.detail)
