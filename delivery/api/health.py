"""Liveness, readiness, proof of identity and metrics of this process. Nothing here is about a tenant."""

from hmac import compare_digest
from typing import Annotated, Literal

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from msgspec import Meta, Struct

from core.admission.server_proof import NONCE, proof_of
from core.errors import NotFound
from core.processes import LOSS_REMEDY, DataLoss, last_loss
from core.redis.keyspace_events import Notifications, ensure_notifications
from core.redis.server_checks import notification_problem
from delivery.http import metrics
from delivery.http.authentication import authenticate, bearer_token
from delivery.http.context import ApiContext, Response
from delivery.http.decoding import QueryReader
from delivery.http.fields import RequestModel
from delivery.http.responses.problems import problem, respond
from delivery.http.route import OpenRoute, Routes


class ProofQuery(RequestModel, frozen=True):
    """The challenge of the proof: 128 random bits of the client."""

    nonce: Annotated[str, Meta(pattern=NONCE)]


class HealthResponse(Struct):
    """The process is alive, or ready."""

    status: str


class ServerProof(Struct):
    """HMAC-SHA-256 of the nonce and the address of the connection, with the key of the data directory, in hex."""

    proof: str


class ReadinessResponse(Struct, omit_defaults=True):
    """The process can serve requests. `degraded`: it can, but couriers start late, because the server lacks a setting,
    or the store has lost data.

    `missing` says which setting and why; `changed` what this check has set; `lost` what was lost and what to do.
    """

    status: Literal["ok", "degraded"]
    missing: str = ""
    changed: str = ""
    lost: str = ""


_nonce = QueryReader(ProofQuery)
_OK = Response(HealthResponse("ok"))


def live(context: ApiContext) -> Handler:
    """Return whether the process answers. It does not ask the store: a restart would not repair the store."""

    async def handle(request: web.Request) -> web.Response:
        return _OK.encode()

    return handle


def ready(context: ApiContext) -> Handler:
    """Return whether requests should be sent here: the store answers, its data are those with which the process began,
    and the process is not shutting down.

    Also sets the server's `notify-keyspace-events` if it was lost, and reports that.
    """

    async def handle(request: web.Request) -> web.Response:
        if context.closing.is_set():
            return respond(problem("SHUTTING_DOWN", "Use another process."))
        store, mark = context.services.core.store, context.services.mark
        if not await store.ping():
            return respond(problem("STORE_UNAVAILABLE", "The store does not answer."), {hdrs.RETRY_AFTER: "1"})
        if loss := await mark.find_loss():
            return respond(problem("STORE_DATA_LOST", f"{loss.sentence}."), {hdrs.RETRY_AFTER: "5"})
        return _readiness(await ensure_notifications(store.command), await last_loss(store)).encode()

    return handle


def _readiness(state: Notifications, loss: DataLoss | None) -> Response:
    missing, lost = str(notification_problem(state) or ""), f"{loss.sentence}. {LOSS_REMEDY}" if loss else ""
    if missing or lost:
        return Response(ReadinessResponse("degraded", missing, state.changed, lost))
    return Response(ReadinessResponse("ok", changed=state.changed))


def prove(context: ApiContext) -> Handler:
    """Proves to a program on this machine that this is the server of its data directory."""

    async def handle(request: web.Request) -> web.Response:
        nonce = _nonce.read(request.rel_url.query.items()).nonce
        if not context.options.proof_secret:
            raise NotFound("PROOF_NOT_SET_UP", "This server has no key in its data directory.")
        transport = request.transport
        assert transport is not None, "the client waits for the response"
        proof = proof_of(context.options.proof_secret, nonce, transport.get_extra_info("sockname"))
        return Response(ServerProof(proof)).encode()

    return handle


def show_metrics(context: ApiContext) -> Handler:
    """Return the metrics, for Prometheus: with the key in ADA_METRICS_KEY, or an API key with the scope operator."""

    async def handle(request: web.Request) -> web.Response:
        if not _has_metrics_key(request, context.options.metrics_key):
            await authenticate(request, "operator", context, reads=True)
        return web.Response(body=context.metrics.render(), headers={hdrs.CONTENT_TYPE: metrics.CONTENT_TYPE})

    return handle


def _has_metrics_key(request: web.Request, expected: str) -> bool:
    """Return whether a request may read the metrics. Raises Forbidden KEY_MISSING."""
    given = bearer_token(request)
    return bool(expected) and compare_digest(given.encode(errors="replace"), expected.encode())


ROUTES: Routes = (
    OpenRoute("GET", "/livez", "Whether the process is alive", live, HealthResponse),
    OpenRoute("GET", "/readyz", "Whether the process can serve requests", ready, ReadinessResponse),
    OpenRoute("GET", "/v1/server-proof", "Proves to `./ada` on this machine that it may send its key here", prove,
              ServerProof, ProofQuery),
    OpenRoute("GET", "/metrics",
              "Metrics for Prometheus; needs ADA_METRICS_KEY, or an API key with the scope operator", show_metrics,
              metrics.CONTENT_TYPE),
)  # fmt: skip
