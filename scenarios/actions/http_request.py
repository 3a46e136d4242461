"""Sends an HTTP request to another system (C-97)."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta, tzinfo
from typing import Annotated, Any

import msgspec

from core.errors import Invalid
from scenarios.actions.variables import change
from scenarios.bot import Bot
from scenarios.bot.data import MISSING
from scenarios.context import Context
from scenarios.engine import Ending, State, Values, completed, failed, unknown
from scenarios.placeholders.values import as_text, find
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Own, conversion, types
from scenarios.schema.attributes import Anything, Duration, Flag, Text, Whole
from scenarios.schema.variables import VARIABLES, Change, VariableFault, change_of
from scenarios.stores import step_results
from scenarios.words import sentence

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
SAFE = ("GET", "HEAD", "PUT", "DELETE")
"""The methods whose repetition does nothing a second time (RFC 9110)."""

LONGEST = timedelta(seconds=60)
DEFAULT_RETRIES, MOST_RETRIES = 2, 5
_PAUSE = 1.0
"""Seconds before the first repetition; each further one waits twice as long."""
_BEGUN = "begun"
_SAMPLE: Mapping[str, Any] = {"status": 200, "body": "[body]", "headers": {}}


def _method(value: Any, name: str, zone: tzinfo) -> str | None:
    method = as_text(value).strip().upper()
    if method and method not in METHODS:
        raise Invalid("FIELD_INVALID", sentence("method_none", value=method[:20], words=", ".join(METHODS)), name)
    return method or None


def _headers(value: Any, name: str, zone: tzinfo) -> dict[str, str]:
    written = value if isinstance(value, Mapping) else {}
    headers = {as_text(header): as_text(text) for header, text in written.items()}
    if any(not text.isprintable() for pair in headers.items() for text in pair):
        raise Invalid("FIELD_INVALID", sentence("headers_header_one_line"), name)
    return headers


class HttpRequestAttributes(Attributes, frozen=True):
    url: Annotated[Text, Own("The address, with https:// or http://.")] = ""
    method: Annotated[
        str,
        types.choice(*METHODS),
        _method,
        Own("GET, or POST if there is `json`, unless it says otherwise."),
    ] = ""
    headers: Annotated[
        Mapping[str, str],
        types.MAPPING,
        _headers,
        Own("The headers; a secret is written `${NAME}`, a variable of the environment.", may_be_empty=True),
    ] = {}
    json: Annotated[Anything, Own("The body, which is sent as JSON.", may_be_empty=True)] = None
    timeout: Annotated[Duration, Own("How long the response is waited for, at most 60s.")] = timedelta(seconds=10)
    retries: Annotated[
        Whole,
        Own(
            "How often a request that failed is repeated, if its method allows that; POST and PATCH only with"
            " `idempotency_key`.",
            default=DEFAULT_RETRIES,
        ),
    ] = None
    idempotency_key: Annotated[Flag, Own("Whether the header Idempotency-Key names this step.")] = False
    save: Annotated[
        Mapping[str, Any],
        VARIABLES,
        conversion.mapping,
        Own("Variables from the response: `{person.price: body.price}`."),
    ] = {}

    @property
    def verb(self) -> str:
        """The method: what is written, or POST with a body, GET without."""
        return self.method or ("GET" if self.json is None else "POST")

    @property
    def time_limit(self) -> timedelta:
        return min(self.timeout or LONGEST, LONGEST)

    def repetitions(self) -> int:
        return min(DEFAULT_RETRIES if self.retries is None else self.retries, MOST_RETRIES)

    def changes(self, response: Mapping[str, Any], bot: Bot, zone: tzinfo) -> list[Change]:
        """Return what `save` does: variable → path in the response, such as `body.rates.USD`. A path that is not there
        forgets the value. Raises VariableFault.
        """
        found = {as_text(name): find(response, as_text(path)) for name, path in self.save.items()}
        values = {name: None if value is MISSING else value for name, value in found.items()}
        return [change_of(name, value, bot.declared, zone) for name, value in values.items()]


async def execute(context: Context, written: HttpRequestAttributes) -> Ending:
    """Send the request; a repetition after a crash only where it does nothing a second time. Raises Refused."""
    method, headers = written.verb, dict(written.headers)
    if written.idempotency_key:
        headers["Idempotency-Key"] = context.identity
    is_safe = method in SAFE or "Idempotency-Key" in headers
    if not is_safe:
        if await step_results.recall(context):
            return unknown("OUTCOME_UNKNOWN", sentence("not_known_whether_request"))
        await step_results.remember(context, _BEGUN)
    return await _attempts(context, written, headers, written.repetitions() if is_safe else 0)


def rehearse(step: RehearsedStep, written: HttpRequestAttributes) -> Ending:
    """Nothing is saved."""
    return completed({"response": _SAMPLE}, from_person=("response",))


async def simulate(context: Context, written: HttpRequestAttributes, given: Mapping[str, Any] | None) -> Ending:
    """Have the response that a test gives; nothing is saved without one."""
    response = (given or {}).get("response")
    if not isinstance(response, Mapping):
        return completed({"response": _SAMPLE, **(given or {})}, from_person=("response",))
    return await _ending(context, written, response)


async def _attempts(
    context: Context, written: HttpRequestAttributes, headers: Mapping[str, str], retries: int
) -> Ending:
    """Send the request until there is a response of which a repetition would not change anything."""
    ending, may_change = await _attempt(context, written, headers)
    for number in range(retries):
        if not may_change:
            break
        await asyncio.sleep(_PAUSE * 2**number)
        ending, may_change = await _attempt(context, written, headers)
    return ending


async def _attempt(context: Context, written: HttpRequestAttributes, headers: Mapping[str, str]) -> tuple[Ending, bool]:
    """Send the request once. Returns the ending, and whether another attempt may end otherwise."""
    from providers import web_request  # it imports aiohttp, which checking a bot does not need

    content = None if written.json is None else msgspec.json.encode(written.json, enc_hook=str)
    request = web_request.WebRequest(written.verb, written.url, headers, content, written.time_limit)
    try:
        response = await web_request.send(request, allow_private=context.services.allow_private)
    except web_request.WebFault as fault:
        is_known = written.verb in SAFE or not fault.may_have_arrived
        return (failed if is_known else unknown)("NO_RESPONSE", fault.said), fault.may_change
    may_change = response.status == 429 or response.status >= 500
    return await _ending(context, written, msgspec.to_builtins(response)), may_change


async def _ending(context: Context, written: HttpRequestAttributes, response: Mapping[str, Any]) -> Ending:
    values = Values({"response": response}, from_person=frozenset({"response"}))
    if not 200 <= response["status"] < 300:
        said = sentence("response_has_status", status=response["status"])
        return Ending(State.FAILED, values, said, code="STATUS_REFUSED")
    try:
        changes = written.changes(response, context.bot, context.services.timezone)
    except VariableFault as fault:
        return Ending(State.FAILED, values, fault.said, code="VALUE_INVALID")
    ending = await change(context, changes) if changes else completed()
    return replace(ending, returned=ending.returned.and_then(values))


ACTION = ActionType(
    name="http_request",
    help="Sends an HTTP request; completes with a status of 200 to 299. Only addresses outside of the operator's"
    " network are reached.",
    placeholder=True,
    one_of=("url",),
    outcomes=("completed", "failed", "unknown"),
    attributes=HttpRequestAttributes,
    returns={
        "response": "the response: `{response.status}`, `{response.body.…}`, `{response.headers.…}`",
        "person": "the variables of the person",
        "chat": "the variables of the chat",
        "run": "the variables of the run",
    },
    execute=execute,
    rehearse=rehearse,
    simulate=simulate,
    tube="scenarios.web",
)
