"""Requests and responses about audits."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from core.audit.background import AuditRun, Finding, RunState
from core.model.clock import from_ms
from core.redis.library import function
from delivery.schemas.requests import RequestModel


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
    def of(cls, one: Finding) -> "FindingView":
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
