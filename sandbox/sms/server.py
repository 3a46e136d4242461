"""The HTTP server of the SMS gateway, and the delivery reports and incoming SMS that it sends."""

import asyncio
import uuid
from collections.abc import Coroutine
from datetime import UTC, datetime
from hmac import compare_digest

from aiohttp import ClientError, ClientSession, ClientTimeout, web
from yarl import URL

from sandbox.events import ANY, Fault
from sandbox.http_listener import HttpListener, disconnect, html_page, no_response
from sandbox.sms.reports import (
    ReportedMessage,
    escape_values,
    is_delivered,
    replace_escapes,
    report_states,
    report_url,
    with_forged_query,
)
from sandbox.sms.submission import Refused, Submission, denied_numbers, parse_query, parts, read_submission
from sandbox.state import SandboxState

USERNAME, PASSWORD, SENDER = "ada", "sandbox", "+79000000000"
SENDSMS = "/cgi-bin/sendsms"

# faults of the for_all HTTP request, whichever of its numbers they are for
REQUEST_FAULTS = frozenset(
    {"accepted_then_cut", "disconnect_before", "timeout", "bad_gateway", "busy", "queued", "unauthorized"}
)


class SmsServer(HttpListener):
    """Simulates one smsbox with one sendsms-user.

    `url` is the address of sendsms; `inbound_url` is the get-url of its sms-service, with Kannel's escapes.
    """

    def __init__(
        self,
        state: SandboxState,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        username: str = USERNAME,
        password: str = PASSWORD,
        inbound_url: str | None = None,
        report_delay: float = 0.05,
    ) -> None:
        self._state = state
        self._credentials = (username.encode(), password.encode())
        self.inbound_url = inbound_url
        self._report_delay = report_delay
        app = web.Application()
        app.router.add_get(SENDSMS, self._handle)
        app.router.add_post(SENDSMS, _refuse_form)
        super().__init__(app, host, port, SENDSMS)
        self._session: ClientSession | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        await super().start()
        self._session = ClientSession(timeout=ClientTimeout(total=10), headers={"User-Agent": "Kannel/1.4.5"})

    async def stop(self) -> None:
        """Stop; delivery reports not yet sent are lost."""
        await super().stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    # messages

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self._state.count("sms", "http")
        try:
            return await self._submit(request)
        except Refused as refused:
            return _response(refused.status, str(refused))

    async def _submit(self, request: web.Request) -> web.StreamResponse:
        parameters = parse_query(request.rel_url.raw_query_string)
        given = (parameters.get("username", "").encode("latin-1"), parameters.get("password", "").encode("latin-1"))
        if not all(compare_digest(one, other) for one, other in zip(given, self._credentials, strict=True)):
            raise unauthorized()
        submission = read_submission(parameters)
        faults = self._faults(submission)
        request_fault = next((fault for fault in faults.values() if fault and fault.name in REQUEST_FAULTS), None)
        if request_fault is not None and request_fault.name not in ("accepted_then_cut", "queued"):
            return await _inject(request, request_fault)
        await self._accept(submission, faults)
        if request_fault is None:
            return _response(202, "0: Accepted for delivery")
        return await (disconnect(request) if request_fault.name == "accepted_then_cut" else _queued())

    def _faults(self, submission: Submission) -> dict[str, Fault | None]:
        """Return the fault of each number that is accepted. Raises Refused if none is."""
        for_all = self._state.fault("sms", ANY, "sendsms", REQUEST_FAULTS)
        faults = {number: for_all or self._state.fault("sms", e164(number), "sendsms") for number in submission.numbers}
        accepted = {number: fault for number, fault in faults.items() if fault is None or fault.name != "bad_number"}
        if not accepted:
            raise denied_numbers()
        return accepted

    async def _accept(self, submission: Submission, faults: dict[str, Fault | None]) -> None:
        self._state.count("sms", "parts", parts(submission.text, submission.coding) * len(faults))
        for number, fault in faults.items():
            await self._deliver(submission, number, fault)

    async def _deliver(self, submission: Submission, number: str, fault: Fault | None) -> None:
        self._state.count("sms", "messages")
        message = ReportedMessage(str(uuid.uuid4()), submission.sender, number, submission.username, datetime.now(UTC))
        if is_delivered(fault):
            self._state.receive("sms", e164(number), submission.text, reference=message.reference)
        urls = _report_urls(submission, message, fault)
        if fault is not None and fault.name == "report_before_answer":
            await self._send_reports(urls, 0)
        elif urls:
            late = fault is not None and fault.name == "report_late"
            self._start(self._send_reports(urls, (fault.value or 0) if fault and late else self._report_delay))

    # delivery reports and incoming SMS

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send_reports(self, urls: list[str], delay: float) -> None:
        """Call the URLs in order. A report whose URL cannot be reached is lost, as with Kannel."""
        await asyncio.sleep(delay)
        for url in urls:
            status = await self._get(url)
            self._state.count("sms", "reports" if status is not None else "reports lost")

    async def _get(self, url: str) -> int | None:
        assert self._session is not None
        try:
            async with self._session.get(URL(url, encoded=True)) as answer:
                return answer.status
        except (ClientError, TimeoutError, ValueError):
            return None

    async def write(self, number: str, text: str, url: str | None = None) -> int | None:
        """Simulate an incoming SMS: call the inbound URL and return its HTTP status, None if it cannot be reached.

        Raises LookupError if there is no URL to call.
        """
        target = url or self.inbound_url
        if target is None:
            raise LookupError("no inbound URL is set")
        self._state.count("sms", "written")
        self._state.write("sms", e164(number), text)
        message = ReportedMessage(str(uuid.uuid4()), e164(number), SENDER, "", datetime.now(UTC))
        # In an incoming message %p is the sender and %P the receiver; in a delivery report it is the reverse.
        swapped = {"p": message.sender, "q": message.sender, "P": message.receiver, "Q": message.receiver}
        return await self._get(
            replace_escapes(target, {**escape_values(message), **swapped, "a": text, "b": text, "C": "UTF-8"})
        )


def e164(number: str) -> str:
    """Return a number with a plus, as the inbox and the rules have it."""
    return f"+{number.lstrip('+')}"


def _report_urls(submission: Submission, message: ReportedMessage, fault: Fault | None) -> list[str]:
    if not submission.dlr_url:
        return []
    target = (
        with_forged_query(submission.dlr_url)
        if fault is not None and fault.name == "wrong_secret"
        else submission.dlr_url
    )
    return [report_url(target, message, state) for state in report_states(fault, submission.dlr_mask)]


def _response(status: int, text: str) -> web.Response:
    return web.Response(status=status, text=text, content_type="text/html")


async def _queued() -> web.Response:
    return _response(202, "3: Queued for later delivery")


async def _refuse_form(_: web.Request) -> web.Response:
    """Refuse a form: Kannel's sendsms accepts a POST only with its X-Kannel headers."""
    return _response(400, "Invalid content-type")


def unauthorized() -> Refused:
    """Return the refusal of an unknown user or a wrong password."""
    return Refused(403, "Authorization failed for sendsms")


async def _inject(request: web.Request, fault: Fault) -> web.StreamResponse:
    """Respond with a failure that accepts no message."""
    if fault.name == "busy":
        return _response(503, "Temporal failure, try again later.")
    if fault.name == "bad_gateway":
        return html_page(502, "502 Bad Gateway")
    if fault.name == "unauthorized":
        raise unauthorized()
    return await (no_response() if fault.name == "timeout" else disconnect(request))
