"""SMS through Kannel's sendsms over HTTP, or through a provider with a profile (`by_profile.py`). The table of the
gateway's answers is in `outcomes.py`.

Buttons become numbered choices, and files with an address links.

Delivery reports do not come here: the gateway calls `Message.report`, an address of Ada's HTTP API.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import aiohttp

from couriers.provider_calls import AnnouncingConnector, announcing, http_url, noted_call
from couriers.sending import Halted, Message, Outcome, SetupError, coding_of
from couriers.sms import outcomes
from couriers.sms.base import SmsCourier
from couriers.sms.by_profile import ProfileSms
from couriers.sms.profile import KANNEL, load_profile

ALL_REPORTS = "31"  # dlr-mask: delivered 1, failed 2, buffered 4, accepted 8, rejected 16
# Kannel replaces the escapes: the report's status, the SMS centre's message id, and the centre's own text.
REPORT_QUERY = "status=%d&id=%F&answer=%A"


@dataclass(frozen=True)
class Settings:
    """The fields are ADA_SMS_URL and so on; the sender is ADA_SMS_FROM. `profile`: "kannel", the name of one of Ada's
    own, or the path of a file.
    """

    url: str | None = None  # of sendsms; with a profile a host in place of the provider's
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    sender: str | None = field(default=None, metadata={"name": "from"})
    callback_url: str | None = None  # Ada's address as the gateway reaches it; core builds `Message.report` from it
    most_parts: int = 255  # Kannel's `max-messages` (default 10): it drops further parts silently
    price: str = ""  # of one part, with its currency, such as "4.20 ₽": shown before sending
    timeout: timedelta = timedelta(seconds=30)  # of one request; after it the outcome is unknown
    low_balance: float = 100.0  # below it the console and `./ada doctor` warn
    profile: str = field(default=KANNEL, metadata={"setting": "ADA_SMS_PROFILE"})
    inbound: str | None = field(default=None, repr=False, metadata={"setting": "ADA_INBOUND_SMS_SECRET"})

    def __post_init__(self) -> None:
        """Check the settings that the profile needs, and the addresses. Raises SetupError."""
        given = {"url": self.url, "username": self.username, "password": self.password, "from": self.sender}
        needed = given if self.profile == KANNEL else load_profile(self.profile).needs
        if missing := [f"ADA_SMS_{name.upper()}" for name in needed if not given[name]]:
            raise SetupError(f"{' and '.join(missing)} must be set")
        for name, url in (("ADA_SMS_URL", self.url), ("ADA_SMS_CALLBACK_URL", self.callback_url)):
            if url:
                http_url(name, url)
        if not 1 <= self.most_parts <= 255:
            raise SetupError("ADA_SMS_MOST_PARTS must be 1 to 255")
        if self.price and not any(one.isdecimal() for one in self.price):  # as `core.deliveries.costs` reads it
            raise SetupError("ADA_SMS_PRICE must have a number, such as 4.20 ₽: the costs are counted from it")

    @property
    def can_be_answered(self) -> bool:
        """Return whether an SMS to the sender comes in: it is a number, not a name, and the gateway may post here."""
        return bool(self.inbound and self.sender and self.sender.removeprefix("+").isdecimal())


class Sms(SmsCourier):
    """Sends through Kannel."""

    def __init__(self, settings: Settings, session: aiohttp.ClientSession) -> None:
        super().__init__(session, settings.price, settings.most_parts, "the gateway", numbers=settings.can_be_answered)
        self._sender = settings.sender or ""
        self._url = http_url("ADA_SMS_URL", settings.url or "").update_query(
            username=settings.username or "", password=settings.password or ""
        )
        self.account = f"{settings.username}@{self._url.host_port_subcomponent}"

    async def _send(self, message: Message, number: str) -> Outcome:
        parameters = sendsms_parameters(message, number) | {"from": self._sender}
        try:
            with announcing(message.announce):
                return outcomes.outcome_of(*await self.request(parameters))
        except (aiohttp.ClientError, OSError) as error:
            return outcomes.outcome_of_error(error)

    async def request(self, parameters: dict[str, str]) -> tuple[int, str]:
        """Return status and body of one request. Its URL holds the password and must not be shown."""
        with noted_call(f"GET {self._url.path}") as call:
            async with self._session.get(self._url.update_query(parameters), allow_redirects=False) as response:
                body = await response.text(errors="replace")
                call.answered(response.status, body)
                return response.status, body


def sendsms_parameters(message: Message, number: str) -> dict[str, str]:
    """Return the parameters of sendsms that describe a message."""
    parameters = {"to": number, "text": message.text, "charset": "UTF-8", "coding": str(int(coding_of(message.text)))}
    if not message.report_url:
        return parameters
    return parameters | {"dlr-mask": ALL_REPORTS, "dlr-url": dlr_url(message.report_url)}


def dlr_url(report: str) -> str:
    """Return the address for delivery reports with Kannel's escapes added.

    A percent sign of the address itself is doubled, because Kannel would read it as an escape.
    """
    return report.replace("%", "%%") + ("&" if "?" in report else "?") + REPORT_QUERY


async def open(settings: Settings, directory: Path) -> Sms | ProfileSms:  # noqa: A001 - the interface's name
    """Check the gateway or the provider and return the courier; `directory` is not used.

    Raises SetupError if it cannot be reached or refuses the account.
    """
    if settings.profile != KANNEL:
        return await _open_profile(settings)
    courier = Sms(settings, _session(settings.timeout))
    try:
        await _check(courier)
    except BaseException:  # whatever it is, also a cancellation: the connections are closed
        await courier.close()
        raise
    return courier


async def _open_profile(settings: Settings) -> ProfileSms:
    values = {"username": settings.username, "password": settings.password, "sender": settings.sender}
    base = http_url("ADA_SMS_URL", settings.url) if settings.url else None
    known = {name: value for name, value in values.items() if value}
    profile, session = load_profile(settings.profile), _session(settings.timeout)
    numbers, money = settings.can_be_answered, (settings.price, settings.low_balance)
    courier = ProfileSms(profile, known, session, base, *money, numbers=numbers)
    try:
        courier.balance = await courier.check()
    except BaseException:  # whatever it is, also a cancellation: the connections are closed
        await courier.close()
        raise
    return courier


def _session(timeout: timedelta) -> aiohttp.ClientSession:
    """Return a session with a new connection for each request.

    A kept connection may be closed by the gateway during a request; it would be unknown whether that message was sent.
    """
    seconds = timeout.total_seconds()
    return aiohttp.ClientSession(
        connector=AnnouncingConnector(force_close=True, limit=32),
        timeout=aiohttp.ClientTimeout(total=seconds, connect=seconds / 3),
        middlewares=[_without_repeat],
    )


class ResponseLost(aiohttp.ClientError):
    """The connection ended after the request and before the response."""


async def _without_repeat(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Keep aiohttp from repeating the request.

    aiohttp repeats a GET whose connection ends before the response (aiohttp/client.py, IDEMPOTENT_METHODS): here that
    would be a second SMS. It does not repeat after an error class that it does not know.
    """
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise ResponseLost(type(error).__name__) from error


async def _check(courier: Sms) -> None:
    """Send a request without a recipient: Kannel checks the account first, and then reports the missing number."""
    try:
        outcome = outcomes.outcome_of(*await courier.request({}))
    except (aiohttp.ClientError, OSError, ValueError):
        # The error's own text is left out: it can contain the URL and with it the password.
        raise SetupError("the gateway cannot be reached: check that it runs, and ADA_SMS_URL") from None
    if isinstance(outcome, Halted):
        raise SetupError(outcome.detail)
