"""The arguments of a handler: the services and the context of the process, and one authenticated, validated request.

`cli` opens the services, one set per process.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote, unquote, urlencode

from aiohttp import hdrs, web
from msgspec import Struct, UnsetType, json

from core.admission.actions import ActionLog
from core.admission.api_keys import ApiKey, ApiKeys
from core.admission.idempotency import Idempotency
from core.directory.importing import Importing
from core.directory.linking import Linking
from core.errors import Forbidden, Invalid, NotFound
from core.model.delivery import Repeat
from core.model.history_key import HistoryKey, Id
from core.orders import Caller
from core.processes import InstallationMark
from core.services import Services
from core.sessions import Identity, OutsideAccounts, PersonalKeys, Sessions, SignInCodes, SignInLinks
from core.sessions.outside_accounts import EndedLogin, OutsideAccount
from core.updates.events import Events
from core.updates.ingress import Ingress
from core.uploads import Uploads
from core.webhooks.registry import Webhooks
from delivery.http.fields import read_time
from delivery.http.metrics import Metrics
from delivery.http.options import Options
from delivery.http.rate_limit import RateLimiter
from providers.sign_in import SignIn
from scenarios.inspection.bots import BotReader
from scenarios.inspection.runs import RunReader
from scenarios.stores.forms import Forms


class AccountStore(Protocol):
    """Stores the settings of accounts, encrypted."""

    async def change(self, channel: str, version: int, settings: Mapping[str, str], by: str) -> int:
        """Replace settings of a channel, the others stay; an empty text removes one. Returns the new version. Raises
        Conflict ACCOUNT_CHANGED if `version` is not the last one.
        """
        ...


class ProviderSignIn(Protocol):
    """Signs people in at identity providers; `providers.oidc.sign_in`, whose library is imported only if it is set up.
    `titles`: by the names of the providers.
    """

    @property
    def is_secure(self) -> bool: ...

    @property
    def titles(self) -> Mapping[str, str]: ...

    async def begin(self, name: str, browser: str) -> str: ...

    async def finish(self, name: str, query: str, browser: str) -> OutsideAccount: ...

    async def read_logout(self, name: str, token: str) -> EndedLogin: ...

    async def sign_out_address(self, name: str) -> str: ...


@dataclass(frozen=True, slots=True)
class ApiServices:
    """The services of one API process: the services of core, and those that only the API has. They raise
    `core.errors`. `ingress`: what gateways post, by channel; `events`: those of a tenant's bot with scenarios,
    None if it has none; `sign_in`: None without ADA_SIGN_IN; `identity_providers`: None without ADA_OIDC; `start_verb`:
    has the `./ada up` beside the API start a process again, such as `courier vk`.
    """

    core: Services
    mark: InstallationMark
    api_keys: ApiKeys
    idempotency: Idempotency
    sessions: Sessions
    actions: ActionLog
    sign_in_codes: SignInCodes
    sign_in_links: SignInLinks
    importing: Importing
    linking: Linking
    uploads: Uploads
    webhooks: Webhooks
    ingress: Mapping[str, Ingress]
    events: Callable[[str], Events | None] = lambda tenant: None
    runs: RunReader | None = None
    bots: BotReader | None = None
    forms: Forms | None = None
    sign_in: SignIn | None = None
    identity_providers: ProviderSignIn | None = None
    accounts: AccountStore | None = None
    start_verb: Callable[[str, Collection[str]], Awaitable[None]] | None = None

    @property
    def outside_accounts(self) -> OutsideAccounts:
        return OutsideAccounts(self.core.store, self.core.directory, self.sessions)

    @property
    def personal_keys(self) -> PersonalKeys:
        return PersonalKeys(self.sessions)


B = TypeVar("B")
Q = TypeVar("Q")

encode = json.Encoder().encode

NO_CONTENT = 204
JSON_HEADERS = {"Content-Type": "application/json"}
_READS = (hdrs.METH_GET, hdrs.METH_HEAD)


@dataclass(slots=True)
class ApiContext:
    """The objects that all requests of one process share."""

    services: ApiServices
    options: Options
    metrics: Metrics
    rate_limiter: RateLimiter
    openapi: Callable[[], bytes]  # returns the document
    closing: asyncio.Event = field(default_factory=asyncio.Event)  # set when the process ends; streams end then


class ApiRequest(Struct):
    """One authenticated request, without its body. `http` is aiohttp's request."""

    http: web.Request
    context: ApiContext
    identity: Identity

    @property
    def services(self) -> ApiServices:
        return self.context.services

    @property
    def options(self) -> Options:
        return self.context.options

    def part(self, name: str) -> str:
        """Return a part of the address. An id in it is text: 42 is the person whose id was given as 42 or as "42"."""
        return self.http.match_info[name]

    def time(self, text: str | UnsetType | None, path: str) -> datetime | None:
        """Return a time that was sent at `path`, None without one. Raises Invalid TIME_…"""
        return read_time(text, path, self.options.max_days_ahead) if text else None

    @property
    def timezone(self) -> tzinfo:
        """Return the time zone of the tenant."""
        return self.options.timezone_of(self.tenant)

    @property
    def key(self) -> ApiKey:
        return self.identity.key

    @property
    def tenant(self) -> str:
        return self.identity.tenant

    @property
    def reaches_all_tenants(self) -> bool:
        """Return whether the request may reach what belongs to other tenants: an operator's, and inspect's for
        reading."""
        return self.key.is_operator or (self.http.method in _READS and "inspect" in self.key.scopes)

    @property
    def caller(self) -> Caller:
        key = self.key
        return Caller(
            key.tenant, is_admin=key.permits("admin"), may_be_urgent=key.permits("urgent"), person=self.identity.person
        )

    @property
    def history_key(self) -> HistoryKey:
        """The delivery that the address names. Raises `NotFound`, also for what is no history key, and for a delivery
        of another person.
        """
        raw = self.http.rel_url.raw_parts[3]  # /v1/deliveries/<id>: raw, since an id has escapes of its own
        return self.own_history_key(unquote(raw) if raw.startswith("history") else raw)

    @property
    def senders_history_key(self) -> HistoryKey:
        """The delivery that the address names, for what only its sender sees. Raises `NotFound`."""
        if not self.identity.acts_for(self.history_key.sender):
            raise _history_not_found()
        return self.history_key

    def own_history_key(self, text: str) -> HistoryKey:
        """Return the key of a delivery that the caller may see, or change if this is no GET. Raises `NotFound` for all
        others.
        """
        key, identity = parse_history_key(text), self.identity
        is_allowed = identity.may_see_deliveries_of if self.http.method in _READS else identity.acts_for
        if not is_allowed(key.sender):
            raise _history_not_found()
        return key

    def check_own(self, sender: Id, path: str) -> None:
        """Check that a person acts only as itself. Raises `Forbidden` NOT_YOURSELF."""
        if not self.identity.acts_for(sender):
            raise Forbidden("NOT_YOURSELF", "A person sends and reads only in its own name.", path)


class Request(ApiRequest, Generic[B, Q]):
    """One authenticated, validated request. `body` and `query` have the types that the route declares."""

    body: B
    query: Q
    repeat: Repeat | None = None  # set if there is an Idempotency-Key and the route handles it itself


AnyRequest = Request[Any, Any]
"""The request of a route of which only the table knows the types."""


def parse_history_key(text: str) -> HistoryKey:
    """Return the key of a delivery. Keys are opaque to clients, so a malformed one is an unknown one. Raises
    `NotFound`."""
    try:
        return HistoryKey.parse(text)
    except Invalid:
        raise _history_not_found() from None


def _history_not_found() -> NotFound:
    return NotFound("HISTORY_NOT_FOUND", "There is no such delivery.")


class Response(Struct):
    """A JSON response. `body` is anything that msgspec encodes; a response with status 204 has none."""

    body: object
    status: int = 200
    headers: Mapping[str, str] | None = None

    def encode(self) -> web.Response:
        return self.with_body(self.encoded_body())

    def encoded_body(self) -> bytes:
        return b"" if self.status == NO_CONTENT else encode(self.body)

    def with_body(self, body: bytes) -> web.Response:
        """Return the response whose body was encoded before."""
        if self.status == NO_CONTENT:
            return web.Response(status=NO_CONTENT, headers=self.headers)
        headers = {**JSON_HEADERS, **self.headers} if self.headers else JSON_HEADERS
        return web.Response(status=self.status, body=body, headers=headers)


def no_content() -> Response:
    return Response(None, NO_CONTENT)


def location(collection: str, created: Id) -> dict[str, str]:
    """Return the header with the address of a new object."""
    return {"Location": f"/v1/{collection}/{quote(str(created), safe='')}"}


def next_page_link(request: web.Request, cursor: str | None) -> Mapping[str, str] | None:
    """Return the Link header (RFC 8288) to the next page; None on the last page."""
    if cursor is None:
        return None
    rest = [(name, value) for name, value in request.rel_url.query.items() if name != "cursor"]
    return {"Link": f'<{request.rel_url.raw_path}?{urlencode([*rest, ("cursor", cursor)])}>; rel="next"'}
