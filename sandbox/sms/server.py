"""The HTTP side of the SMS gateway, and the calls it makes back."""

import asyncio
import uuid
from collections.abc import Coroutine
from datetime import UTC, datetime
from hmac import compare_digest

from aiohttp import ClientError, ClientSession, ClientTimeout, web
from yarl import URL

from sandbox.events import ANY, Fault
from sandbox.http_listener import Listener, cut, html, silence
from sandbox.sms.alphabet import parts
from sandbox.sms.reports import Reported, address, escapes, fill, forged, history, reaches
from sandbox.sms.submission import Refused, Submission, denied, submission, unwrapped
from sandbox.state import World

USERNAME, PASSWORD, SENDER = "ada", "sandbox", "Ada"
SENDSMS = "/cgi-bin/sendsms"

# what strikes the HTTP request as a whole, whichever of its numbers asks for it
REQUEST_FAULTS = frozenset({"accepted_then_cut", "disconnect_before", "timeout", "bad_gateway", "busy", "queued"})


class SmsServer(Listener):
    """Plays one smsbox with one sendsms-user, asked at `url`; `inbound_url` is its sms-service's get-url, with Kannel's
    escapes.
    """

    def __init__(
        self,
        world: World,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        username: str = USERNAME,
        password: str = PASSWORD,
        inbound_url: str | None = None,
        report_delay: float = 0.05,
    ) -> None:
        self._world = world
        self._credentials = (username.encode(), password.encode())
        self.inbound_url = inbound_url
        self._report_delay = report_delay
        app = web.Application()
        app.router.add_get(SENDSMS, self._answer)
        app.router.add_post(SENDSMS, _no_form)
        super().__init__(app, host, port, SENDSMS)
        self._session: ClientSession | None = None
        self._reporting: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        await super().start()
        self._session = ClientSession(timeout=ClientTimeout(total=10), headers={"User-Agent": "Kannel/1.4.5"})

    async def stop(self) -> None:
        """Stop; reports that are still due are lost."""
        await super().stop()
        for task in self._reporting:
            task.cancel()
        await asyncio.gather(*self._reporting, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    # taking messages

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        self._world.count("sms", "http")
        try:
            return await self._take(request)
        except Refused as refused:
            return _kannel(refused.status, str(refused))

    async def _take(self, request: web.Request) -> web.StreamResponse:
        parameters = unwrapped(request.rel_url.raw_query_string)
        given = (parameters.get("username", "").encode("latin-1"), parameters.get("password", "").encode("latin-1"))
        if not all(compare_digest(one, other) for one, other in zip(given, self._credentials, strict=True)):
            raise Refused(403, "Authorization failed for sendsms")
        taken = submission(parameters)
        faults = self._faults(taken)
        struck = next((fault for fault in faults.values() if fault and fault.name in REQUEST_FAULTS), None)
        if struck is not None and struck.name not in ("accepted_then_cut", "queued"):
            return await _fail(request, struck)
        await self._accept(taken, faults)
        if struck is None:
            return _kannel(202, "0: Accepted for delivery")
        return await (cut(request) if struck.name == "accepted_then_cut" else _queued())

    def _faults(self, taken: Submission) -> dict[str, Fault | None]:
        """Return the fault of every number that is not refused; raises Refused when none is left."""
        whole = self._world.fault("sms", ANY, "sendsms", REQUEST_FAULTS)
        faults = {number: whole or self._world.fault("sms", e164(number), "sendsms") for number in taken.numbers}
        good = {number: fault for number, fault in faults.items() if fault is None or fault.name != "bad_number"}
        if not good:
            raise denied()
        return good

    async def _accept(self, taken: Submission, faults: dict[str, Fault | None]) -> None:
        self._world.count("sms", "parts", parts(taken.text, taken.coding) * len(faults))
        for number, fault in faults.items():
            await self._deliver(taken, number, fault)

    async def _deliver(self, taken: Submission, number: str, fault: Fault | None) -> None:
        self._world.count("sms", "messages")
        message = Reported(str(uuid.uuid4()), taken.sender, number, taken.username, datetime.now(UTC))
        if reaches(fault):
            self._world.receive("sms", e164(number), taken.text, reference=message.reference)
        urls = _report_urls(taken, message, fault)
        if fault is not None and fault.name == "report_before_answer":
            await self._report(urls, 0)
        elif urls:
            late = fault is not None and fault.name == "report_late"
            self._later(self._report(urls, (fault.value or 0) if fault and late else self._report_delay))

    # calling back

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._reporting.add(task)
        task.add_done_callback(self._reporting.discard)

    async def _report(self, urls: list[str], delay: float) -> None:
        """Call the addresses one after the other; who cannot be reached loses the report, as with Kannel."""
        await asyncio.sleep(delay)
        for url in urls:
            status = await self._get(url)
            self._world.count("sms", "reports" if status is not None else "reports lost")

    async def _get(self, url: str) -> int | None:
        assert self._session is not None
        try:
            async with self._session.get(URL(url, encoded=True)) as answer:
                return answer.status
        except (ClientError, TimeoutError, ValueError):
            return None

    async def write(self, number: str, text: str, url: str | None = None) -> int | None:
        """Let a person write an SMS: call the inbound address; returns its HTTP status, None if nobody answers.

        Raises LookupError when there is no address to call.
        """
        target = url or self.inbound_url
        if target is None:
            raise LookupError("no inbound address is set")
        self._world.count("sms", "written")
        message = Reported(str(uuid.uuid4()), e164(number), SENDER, "", datetime.now(UTC))
        # In an incoming message %p is who sends it and %P who gets it, the other way round than in a report.
        turned = {"p": message.sender, "q": message.sender, "P": message.receiver, "Q": message.receiver}
        return await self._get(fill(target, {**escapes(message), **turned, "a": text, "b": text, "C": "UTF-8"}))


def e164(number: str) -> str:
    """Return a number with its plus, the form of the inbox and of the rules."""
    return f"+{number.lstrip('+')}"


def _report_urls(taken: Submission, message: Reported, fault: Fault | None) -> list[str]:
    if not taken.dlr_url:
        return []
    target = forged(taken.dlr_url) if fault is not None and fault.name == "wrong_secret" else taken.dlr_url
    return [address(target, message, state) for state in history(fault, taken.dlr_mask)]


def _kannel(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text, content_type="text/html")


async def _queued() -> web.Response:
    return _kannel(202, "3: Queued for later delivery")


async def _no_form(_: web.Request) -> web.Response:
    """Refuse a form: Kannel's sendsms takes a POST only with its X-Kannel headers."""
    return _kannel(400, "Invalid content-type")


async def _fail(request: web.Request, fault: Fault) -> web.StreamResponse:
    """Play a failure that accepts nothing."""
    if fault.name == "busy":
        return _kannel(503, "Temporal failure, try again later.")
    if fault.name == "bad_gateway":
        return html(502, "502 Bad Gateway")
    return await (silence() if fault.name == "timeout" else cut(request))
