"""Audits over HTTP: start one, its progress and findings, repair one finding after its repair was shown."""

from typing import Any

from core.audit.background import BackgroundAudits
from delivery.http.context import Request, Response
from delivery.http.route import NoParameters
from delivery.schemas.console import audits as schemas


async def start(request: Request[None, NoParameters]) -> Response:
    """Start an audit, unless one runs."""
    run = await _audits(request).start(request.key.name or request.key.id)
    return Response(schemas.AuditRunView.of(run), 202)


async def show(request: Request[None, NoParameters]) -> Response:
    """Return the last audit and what it has found so far."""
    audits = _audits(request)
    run, findings = await audits.last(), await audits.findings()
    view = schemas.AuditRunView.of(run) if run else None
    return Response(schemas.AuditView(view, [schemas.FindingView.of(one) for one in findings] if run else []))


async def repair(request: Request[schemas.RepairRequest, NoParameters]) -> Response:
    """Repair one finding; the function checks again and changes only what is still wrong."""
    repaired = await _audits(request).repair(request.body.run, request.body.number)
    return Response(schemas.FindingView.of(repaired))


def _audits(request: Request[Any, NoParameters]) -> BackgroundAudits:
    return BackgroundAudits(request.services.core.store)
