"""Audits over HTTP: start one, its progress and findings, repair one finding after its repair was shown."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from core.audit.background import AuditFinding, AuditRun, BackgroundAudits, RunState
from core.model.clock import from_ms
from core.redis.library import function
from delivery.http.context import ApiRequest, Request, Response
from delivery.http.fields import RequestModel
from delivery.http.route import NoParameters, PlainRequest, Repeats, Route, Routes


class AuditRunView(Struct, frozen=True, kw_only=True):
    """A pass over the server. `keys`, `tasks`, `deliveries`: what was read so far, of `all_keys`. `violations`: how
    many were found. `reason`: why it failed.
    """

    id: str
    by: str
    started: datetime
    state: RunState
    reason: str
    keys: int
    all_keys: int
    tasks: int
    deliveries: int
    violations: int

    @classmethod
    def of(cls, run: AuditRun) -> "AuditRunView":
        return cls(
            id=run.id,
            by=run.by,
            started=from_ms(run.started),
            state=run.state,
            reason=run.reason,
            keys=run.keys,
            all_keys=run.all_keys,
            tasks=run.tasks,
            deliveries=run.deliveries,
            violations=run.violations,
        )


class FindingView(Struct, frozen=True):
    """A violation of an invariant of docs/proof.md. `repair`: what the repair will do, null if none is safe; `why` says
    why then. `changes`: what a repair has changed, null before it; none if it was right by then.
    """

    number: int
    rule: str
    key: str
    found: str
    wanted: str
    repair: str | None
    why: str
    changes: Sequence[str] | None

    @classmethod
    def of(cls, one: AuditFinding) -> "FindingView":
        what = function(one.repair).purpose if one.repair else None
        return cls(one.number, one.rule, one.key, one.found, one.wanted, what, one.why, one.changes)


class AuditView(Struct, frozen=True):
    """The last audit, null if there was none within a day, and the first 1,000 things that it found."""

    run: AuditRunView | None
    findings: Sequence[FindingView]


class RepairRequest(RequestModel, frozen=True):
    """A finding of the last run."""

    run: Annotated[str, Meta(min_length=1, max_length=64)]
    number: Annotated[int, Meta(ge=0, le=999)]


async def start(request: PlainRequest) -> Response:
    """Start an audit, unless one runs."""
    run = await _audits(request).start(request.key.name or request.key.id)
    return Response(AuditRunView.of(run), 202)


async def show(request: PlainRequest) -> Response:
    """Return the last audit and what it has found so far."""
    audits = _audits(request)
    run, findings = await audits.last(), await audits.findings()
    view = AuditRunView.of(run) if run else None
    return Response(AuditView(view, [FindingView.of(one) for one in findings] if run else []))


async def repair(request: Request[RepairRequest, NoParameters]) -> Response:
    """Repair one finding; the function checks again and changes only what is still wrong."""
    repaired = await _audits(request).repair(request.body.run, request.body.number)
    return Response(FindingView.of(repaired))


def _audits(request: ApiRequest) -> BackgroundAudits:
    return BackgroundAudits(request.services.core.store)


ROUTES: Routes = (
    Route("GET", "/v1/audits", "The last audit: its progress, what it has found, what a repair would do", "operator",
          show, 200, AuditView),
    Route("POST", "/v1/audits", "Start an audit, which only reads; one runs at a time", "operator", start, 202,
          AuditRunView, repeats=Repeats.STORED),
    Route("POST", "/v1/audits:repair", "Repair one finding of the last audit, if it is still wrong", "operator",
          repair, 200, FindingView, body=RepairRequest, repeats=Repeats.STORED),
)  # fmt: skip
