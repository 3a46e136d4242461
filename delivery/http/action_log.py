"""Writes what a request has changed for others to the action log, right after the change."""

import logging
import re
from urllib.parse import unquote

from aiohttp import hdrs, web
from msgspec import UNSET, json

from core.admission.actions import MAX_REASON, OperatorAction
from core.admission.api_keys import SCIM
from core.errors import StoreError
from delivery.http.context import ApiRequest, Response
from delivery.http.route import People, Route

log = logging.getLogger(__name__)

REASON = "Ada-Reason"
"""The header with the reason, percent-encoded UTF-8."""
ACTION = "Ada-Action"
"""The header with the name of an action of many requests, which have one entry together."""
ABOUT = web.RequestKey("about", str)
"""The key of a request under which a handler leaves what it is about, where its address has only an opaque id."""
CLI_AGENT = "ada-cli"
_OPERATORS = frozenset({"manage", SCIM, "admin", "operator"})
_COUNTS = (("changed",), ("cancelled",), ("queued",), ("replayed",), ("deleted",), ("created", "updated"))
"""The fields of a response that say how many things were changed; those of one line are added up."""
_FILTERS = (
    *("tenant", "tube", "state", "kind", "kind_prefix", "user", "sender", "lane", "tag", "error", "reason", "q"),
)
"""The fields by which a body selects what is changed."""
_STEP_OF_SCIM = "scim-changes"
"""Identity providers change each person by itself: the changes of a kind and day are one entry."""
_STEP = re.compile(r"[A-Za-z0-9_-]{8,64}")
_NOT_LOGGED = ("/v1/links", "/v1/sign-in", "/v1/import/columns")


def is_logged(route: Route, request: ApiRequest) -> bool:
    """Return whether the request changes what belongs to others: by a route for operators, or by an administrator's key
    in deliveries that exist; or makes or revokes a personal key. What a person does else with its own is in the
    histories.
    """
    if "dry_run" in request.http.rel_url.query:
        return False
    if is_logged_for_everybody(route):
        return True
    if route.reads:
        return False
    is_change = route.people is People.OWN and route.path.startswith("/v1/deliveries/{id}")
    return (is_change or route.path == "/v1/cancellations") and request.key.permits("admin")


def is_logged_for_everybody(route: Route) -> bool:
    """Return whether a change by this route is in the log whoever makes it."""
    is_for_operators = route.scope in _OPERATORS or route.path.startswith("/v1/me/keys")
    return is_for_operators and not route.reads and not route.path.startswith(_NOT_LOGGED)


async def write_action(route: Route, request: ApiRequest, response: Response | web.StreamResponse) -> None:
    """Write the entry. A log that cannot be written does not undo the change, so it is only reported."""
    action = _action(f"{route.method} {route.path}", request, _count(response))
    step = _STEP_OF_SCIM if route.scope == SCIM else request.http.headers.get(ACTION, "")
    try:
        await request.services.actions.write(request.tenant, action, step if _STEP.fullmatch(step) else "")
    except StoreError as fault:
        log.error("%s by %s is not in the action log: %s", action.what, action.who, fault)


async def write_reading(what: str, request: ApiRequest) -> None:
    """Write that something was read which needs a reason. Raises StoreError: what cannot be written is not read."""
    await request.services.actions.write(request.tenant, _action(what, request, 1))


def _action(what: str, request: ApiRequest, count: int) -> OperatorAction:
    person, http = request.identity.person, request.http
    agent, body = http.headers.get(hdrs.USER_AGENT, ""), getattr(request, "body", None)
    return OperatorAction(
        who=f"person:{person.id}" if person else request.key.id,
        name=request.key.name,
        via="console" if request.identity.session else "cli" if agent.startswith(CLI_AGENT) else "api",
        what=what,
        target=http.rel_url.path_qs[:1024],
        count=count,
        why=reason_of(http) or _reason_in(body),
        filter=http.get(ABOUT) or _filter_of(what, body)[:1024],
    )


def _reason_in(body: object) -> str:
    """Return the reason that a body gives, such as that of a pause; "" if its reason selects what is changed."""
    is_selected_by_it = hasattr(body, "expected") and not hasattr(body, "filter")
    reason = "" if is_selected_by_it else getattr(body, "reason", "")
    return _printable(reason) if isinstance(reason, str) else ""


def _filter_of(what: str, body: object) -> str:
    """Return by what a request selects, such as `tube=sms state=ready`; "" if it names what it changes."""
    if not (what.endswith("/cancellations") or hasattr(body, "expected")):
        return ""
    selected = getattr(body, "filter", body)
    given = [(name, getattr(selected, name, UNSET)) for name in _FILTERS]
    return " ".join(f"{name}={value}" for name, value in given if value not in (UNSET, None, ""))


def _count(response: Response | web.StreamResponse) -> int:
    """Return how many things the response says were changed; else 1."""
    body: object = response.body if isinstance(response, Response) else None
    if (
        isinstance(response, web.Response)
        and isinstance(response.body, bytes)
        and response.content_type.endswith("json")
    ):
        body = json.decode(response.body)
    for names in _COUNTS:
        values = [body.get(name) if isinstance(body, dict) else getattr(body, name, None) for name in names]
        counts = [value for value in values if type(value) is int]
        if counts:
            return sum(counts)
    return 1


def reason_of(http: web.Request) -> str:
    return _printable(unquote(http.headers.get(REASON, ""), errors="replace"))


def _printable(reason: str) -> str:
    return "".join(letter for letter in reason if letter.isprintable()).strip()[:MAX_REASON]
