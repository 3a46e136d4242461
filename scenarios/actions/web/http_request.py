"""Sends an HTTP request to another system (C-97)."""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from scenarios.actions.memory.set import change
from scenarios.context import Context
from scenarios.engine import Ending, State, Values
from scenarios.engine.results import completed, failed, unknown
from scenarios.placeholders.values import as_text, is_true
from scenarios.schema import ActionType, Field, types
from scenarios.schema.variables import VARIABLES, VariableFault
from scenarios.schema.web_requests import (
    DEFAULT_RETRIES,
    DEFAULT_TIMEOUT,
    METHODS,
    SAFE,
    headers_of,
    method_of,
    retries_of,
    saved,
    time_limit_of,
)
from scenarios.stores import step_results

_PAUSE = 1.0
"""Seconds before the first repetition; each further one waits twice as long."""
_BEGUN = "begun"


async def execute(context: Context) -> Ending:
    """Send the request; a repetition after a crash only where it does nothing a second time. Raises Refused."""
    own = context.prepared.own
    method, headers = method_of(own), headers_of(own)
    if is_true(own.get("idempotency_key")):
        headers["Idempotency-Key"] = context.identity
    is_safe = method in SAFE or "Idempotency-Key" in headers
    if not is_safe:
        if await step_results.recall(context):
            return unknown("it is not known whether the request of before a crash has arrived")
        await step_results.remember(context, _BEGUN)
    return await _attempts(context, method, headers, retries_of(own) if is_safe else 0)


async def _attempts(context: Context, method: str, headers: Mapping[str, str], retries: int) -> Ending:
    """Send the request until there is a response of which a repetition would not change anything."""
    ending, may_change = await _attempt(context, method, headers)
    for number in range(retries):
        if not may_change:
            break
        await asyncio.sleep(_PAUSE * 2**number)
        ending, may_change = await _attempt(context, method, headers)
    return ending


async def _attempt(context: Context, method: str, headers: Mapping[str, str]) -> tuple[Ending, bool]:
    """Send the request once. Returns the ending, and whether another attempt may end otherwise."""
    from providers import web_request  # it imports aiohttp, which checking a bot does not need

    own, body = context.prepared.own, context.prepared.own.get("json")
    content = None if body is None else msgspec.json.encode(body, enc_hook=str)
    url = as_text(own.get("url")).strip()
    request = web_request.WebRequest(method, url, headers, content, time_limit_of(own))
    try:
        response = await web_request.send(request, allow_private=context.services.allow_private)
    except web_request.WebFault as fault:
        is_known = method in SAFE or not fault.may_have_arrived
        return failed(str(fault)) if is_known else unknown(str(fault)), fault.may_change
    may_change = response.status == 429 or response.status >= 500
    return await _ending(context, msgspec.to_builtins(response)), may_change


async def _ending(context: Context, response: dict[str, Any]) -> Ending:
    values = Values({"response": response}, from_person=frozenset({"response"}))
    if not 200 <= response["status"] < 300:
        return Ending(State.FAILED, values, f"the response has the status {response['status']}")
    try:
        changes = saved(context.prepared.own, response, context.bot.declared, context.services.timezone)
    except VariableFault as fault:
        return Ending(State.FAILED, values, str(fault))
    ending = await change(context, changes) if changes else completed()
    return Ending(ending.state, ending.returned.and_then(values), ending.error)


ACTION = ActionType(
    name="http_request",
    help="Sends an HTTP request; completes with a status of 200 to 299. Only addresses outside of the operator's"
    " network are reached.",
    placeholder=True,
    one_of=("url",),
    outcomes=("completed", "failed", "unknown"),
    fields=(
        Field("url", types.TEXT, "The address, with https:// or http://."),
        Field("method", types.choice(*METHODS), "GET, or POST if there is `json`, unless it says otherwise."),
        Field("headers", types.MAPPING, "The headers; a secret is written `${NAME}`, a variable of the environment."),
        Field("json", types.ANY, "The body, which is sent as JSON."),
        Field("timeout", types.DURATION, "How long the response is waited for, at most 60s.", default=DEFAULT_TIMEOUT),
        Field(
            "retries",
            types.WHOLE,
            "How often a request that failed is repeated, if its method allows that; POST and PATCH only with"
            " `idempotency_key`.",
            default=DEFAULT_RETRIES,
        ),
        Field("idempotency_key", types.FLAG, "Whether the header Idempotency-Key names this step.", default=False),
        Field("save", VARIABLES, "Variables from the response: `{person.price: body.price}`."),
    ),
    returns={
        "response": "the response: `{response.status}`, `{response.body.…}`, `{response.headers.…}`",
        "person": "the variables of the person",
        "chat": "the variables of the chat",
        "run": "the variables of the run",
    },
    execute=execute,
    tube="scenarios.web",
)
