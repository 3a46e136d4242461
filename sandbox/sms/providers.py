"""Simulates the HTTP interfaces of SMS.ru, SMSC.ru, Exolve, SMS Aero and Twilio, each at its own paths.

Written after the documentation of the providers, not compared with them. Faults are those of the channel `sms`.
"""

import asyncio
import itertools
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from aiohttp import ClientError, ClientSession, ClientTimeout, web

from sandbox.http_listener import HttpListener, disconnect, html_page, no_response
from sandbox.state import SandboxState

USERNAME, PASSWORD = "ada", "sandbox"
BALANCE = 250.5

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Dialect:
    """One provider. `number`, `text`, `own_id`, `callback`: the names of its fields. `refusals`: the status and the
    body, by the name of a fault. `report`: the body of a report, given an id and whether the message was delivered.
    """

    send: str
    balance: str
    number: str
    text: str
    accepted: Callable[[str, str], tuple[int, Json]]
    shows_balance: Callable[[], Json]
    refusals: Mapping[str, tuple[int, Json]]
    report: Callable[[str, bool], Json]
    key: str = ""  # the field with the password; "": in the header Authorization
    is_bearer: bool = False
    own_id: str = ""
    callback: str = ""
    is_json_report: bool = False


def _sms_ru(code: int) -> tuple[int, Json]:
    return 200, {"status": "OK", "status_code": 100, "sms": {"79990000000": {"status": "ERROR", "status_code": code}}}


DIALECTS = {
    "sms.ru": Dialect(
        "/sms/send", "/my/balance", "to", "msg",
        lambda id_, to: (200, {"status": "OK", "status_code": 100, "sms": {to: {"status_code": 100, "sms_id": id_}}}),
        lambda: {"status": "OK", "status_code": 100, "balance": BALANCE},
        {
            "bad_number": _sms_ru(202), "no_money": _sms_ru(201), "busy": _sms_ru(220),
            "unauthorized": (200, {"status": "ERROR", "status_code": 200, "status_text": "wrong api_id"}),
        },
        lambda id_, ok: {"data[0]": f"sms_status\n{id_}\n{103 if ok else 104}\n1795240810"},
        key="api_id",
    ),
    "smsc.ru": Dialect(
        "/sys/send.php", "/sys/balance.php", "phones", "mes",
        lambda id_, to: (200, {"id": int(id_), "cnt": 1}),
        lambda: {"balance": str(BALANCE)},
        {
            "bad_number": (200, {"error": "invalid number", "error_code": 7}),
            "no_money": (200, {"error": "no money", "error_code": 3}),
            "busy": (200, {"error": "duplicate request", "error_code": 9}),
            "unauthorized": (200, {"error": "authorise error", "error_code": 2}),
        },
        lambda id_, ok: {"id": id_, "phone": "79990000000", "status": "1" if ok else "20"},
        key="psw", own_id="id",
    ),
    "exolve": Dialect(
        "/messaging/v1/SendSMS", "/finance/v1/GetBalance", "destination", "text",
        lambda id_, to: (200, {"message_id": id_}),
        lambda: {"balance": str(BALANCE)},
        {
            "bad_number": (400, {"error": {"code": 3, "message": "invalid destination"}}),
            "no_money": (402, {"error": {"code": 9, "message": "not enough money"}}),
            "busy": (429, {"error": {"code": 8, "message": "too many requests"}}),
            "unauthorized": (401, {"error": {"code": 16, "message": "unauthenticated"}}),
        },
        lambda id_, ok: {"message_id": id_, "status": "delivered" if ok else "undelivered"},
        is_bearer=True, is_json_report=True,
    ),
    "smsaero": Dialect(
        "/v2/sms/send", "/v2/balance", "number", "text",
        lambda id_, to: (200, {"success": True, "data": {"id": int(id_), "number": to, "status": 8}}),
        lambda: {"success": True, "data": {"balance": BALANCE}},
        {
            "bad_number": (400, {"success": False, "message": "Validation error."}),
            "no_money": (402, {"success": False, "message": "Not enough money"}),
            "busy": (429, {"success": False, "message": "Too many requests"}),
            "unauthorized": (401, {"success": False, "message": "Your request was made with invalid credentials."}),
        },
        lambda id_, ok: {"id": id_, "status": "1" if ok else "2"},
        callback="callbackUrl",
    ),
    "twilio": Dialect(
        f"/2010-04-01/Accounts/{USERNAME}/Messages.json", f"/2010-04-01/Accounts/{USERNAME}/Balance.json", "To", "Body",
        lambda id_, to: (201, {"sid": f"SM{id_}", "status": "queued", "to": to}),
        lambda: {"balance": str(BALANCE), "currency": "USD"},
        {
            "bad_number": (400, {"code": 21211, "message": "invalid 'To' number", "status": 400}),
            "no_money": (403, {"code": 30002, "message": "account suspended", "status": 403}),
            "busy": (429, {"code": 20429, "message": "too many requests", "status": 429}),
            "unauthorized": (401, {"code": 20003, "message": "Authenticate", "status": 401}),
        },
        lambda id_, ok: {"MessageSid": f"SM{id_}", "MessageStatus": "delivered" if ok else "undelivered"},
        callback="StatusCallback",
    ),
}  # fmt: skip


class SmsProvidersServer(HttpListener):
    """`report_urls`: by the name of a provider, the address for reports that is set in its account."""

    def __init__(self, state: SandboxState, host: str = "127.0.0.1", port: int = 0) -> None:
        self._state = state
        self.report_urls: dict[str, str] = {}
        self.reported: list[tuple[int, str]] = []  # the answers to reports
        self._ids = itertools.count(1_000_001)
        self._known: dict[str, str] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        app = web.Application()
        for name, one in DIALECTS.items():
            app.router.add_post(one.send, self._sender(name, one))
            app.router.add_route("*", one.balance, self._balance(one))
        app.router.add_post("/sys/status.php", self._status)
        super().__init__(app, host, port, "")

    async def stop(self) -> None:
        """Stop; reports that were not sent are lost."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await super().stop()

    def _balance(self, one: Dialect) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.Response:
            if not self._is_authorized(request, one, await _fields(request)):
                return _json(one.refusals["unauthorized"])
            return web.json_response(one.shows_balance())

        return handle

    def _sender(self, name: str, one: Dialect) -> Callable[[web.Request], Any]:
        async def handle(request: web.Request) -> web.StreamResponse:
            self._state.count("sms", name)
            fields = await _fields(request)
            if not self._is_authorized(request, one, fields):
                return _json(one.refusals["unauthorized"])
            return await self._send(request, name, one, fields)

        return handle

    async def _send(
        self, request: web.Request, name: str, one: Dialect, fields: Mapping[str, str]
    ) -> web.StreamResponse:
        number = f"+{fields.get(one.number, '').lstrip('+')}"
        fault = self._state.fault("sms", number, "send")
        kind = fault.name if fault else ""
        if kind in one.refusals:
            return _json(one.refusals[kind])
        if kind in _UNSTORED:
            return await _fail(request, kind)
        own = fields.get(one.own_id, "") if one.own_id else ""
        identity = own or str(next(self._ids))
        is_delivered = kind != "report_failed"
        if is_delivered:
            self._state.receive("sms", number, fields.get(one.text, ""), reference=identity)
        self._known[identity] = number
        if url := (fields.get(one.callback) if one.callback else self.report_urls.get(name)):
            self._report(url, one, identity, is_delivered=is_delivered)
        if kind == "accepted_then_cut":
            return await disconnect(request)
        return _json(one.accepted(identity, number.lstrip("+")))

    def _report(self, url: str, one: Dialect, identity: str, *, is_delivered: bool) -> None:
        task = asyncio.get_running_loop().create_task(self._post(url, one, one.report(identity, is_delivered)))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _post(self, url: str, one: Dialect, report: Json) -> None:
        """Post a report until it is taken, some times."""
        body: Json = {"json": report} if one.is_json_report else {"data": report}
        async with ClientSession(timeout=ClientTimeout(total=10)) as session:
            for attempt in range(8):
                await asyncio.sleep(0.05 * 2**attempt)
                try:
                    async with session.post(url, **body) as answer:
                        self.reported.append((answer.status, await answer.text()))
                        if answer.status == 200:
                            return
                except (ClientError, TimeoutError):
                    continue

    async def _status(self, request: web.Request) -> web.Response:
        """Return SMSC.ru's status of a message by its id."""
        fields = await _fields(request)
        number = self._known.get(fields.get("id", ""))
        is_known = number is not None and number.lstrip("+") == fields.get("phone")
        return web.json_response({"status": 1} if is_known else {"error": "not found", "error_code": 3, "status": -3})

    def _is_authorized(self, request: web.Request, one: Dialect, fields: Mapping[str, str]) -> bool:
        if one.key:
            return fields.get(one.key) == PASSWORD
        basic = b64encode(f"{USERNAME}:{PASSWORD}".encode()).decode()
        wanted = f"Bearer {PASSWORD}" if one.is_bearer else f"Basic {basic}"
        return request.headers.get("Authorization") == wanted


_UNSTORED = frozenset({"disconnect_before", "timeout", "bad_gateway", "not_json"})


async def _fail(request: web.Request, kind: str) -> web.StreamResponse:
    """Respond with a failure that is no answer of the provider."""
    if kind == "timeout":
        return await no_response()
    if kind == "disconnect_before":
        return await disconnect(request)
    return html_page(502, "502 Bad Gateway") if kind == "bad_gateway" else html_page(200, "Technical works")


async def _fields(request: web.Request) -> dict[str, str]:
    if request.content_type == "application/json" and request.can_read_body:
        return {name: str(value) for name, value in (await request.json()).items()}
    form = await request.post()
    return {**request.query, **{name: str(value) for name, value in form.items()}}


def _json(answer: tuple[int, Json]) -> web.Response:
    status, body = answer
    return web.json_response(body, status=status)
