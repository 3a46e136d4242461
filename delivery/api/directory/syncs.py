"""The runs of `./ada sync`: report a result, list the sources, ask for a run, forget a source."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct, structs

from core.directory.syncs import (
    ReportedSync,
    SourceState,
    SyncChange,
    SyncFault,
    SyncName,
    SyncRequest,
    SyncResult,
    SyncText,
)
from core.model.clock import from_ms, write_time
from core.model.people import is_source
from delivery.http.context import AnyRequest, Request, Response, no_content
from delivery.http.fields import RequestModel
from delivery.http.responses.problems import invalid_field
from delivery.http.route import NoParameters, People, PlainRequest, Repeats, Route, Routes


class SyncChangeModel(SyncChange, RequestModel, frozen=True):
    """A person that a dry run would change: the names of the fields, without values."""

    id: SyncName
    created: bool
    fields: Annotated[Sequence[SyncText], Meta(max_length=100)] = ()


class SyncReport(ReportedSync, RequestModel, frozen=True):
    """The result of a run. `answers`: the time `at` of the run that was asked for, 0 for another run. `every`: seconds
    between two runs, 0 if nothing watches the source. `fault`: why nothing was changed. `columns`, `groups`: what the
    source has named; a failed run keeps the former ones.
    """

    dry_run: bool = False
    changes: Annotated[Sequence[SyncChangeModel], Meta(max_length=20)] = ()


class SyncRunRequest(RequestModel, frozen=True):
    """`dry_run`: only show what would change."""

    dry_run: bool


class SyncResultView(Struct, frozen=True):
    """The last run of a kind; the fields of the report, and when it ended."""

    place: str
    at: str
    every: int
    fault: SyncFault | None
    detail: str
    created: int
    updated: int
    unchanged: int
    left: int
    missing: int
    of: int
    changes: Sequence[SyncChange]
    disagreements: Sequence[str]
    columns: Sequence[str]
    groups: Sequence[str]

    @classmethod
    def of_result(cls, result: SyncResult) -> "SyncResultView":
        fields = structs.asdict(result)
        del fields["answers"]
        return cls(at=write_time(from_ms(fields.pop("ended"))), **fields)


class SyncSourceView(Struct, frozen=True):
    """A source. `is_late`: the program that watches it is silent. `requested`: a run that was asked for and has not
    ended.
    """

    source: str
    last: SyncResultView | None
    dry_run: SyncResultView | None
    requested: SyncRequest | None
    is_late: bool

    @classmethod
    def of(cls, one: SourceState, now: int) -> "SyncSourceView":
        last, dry_run = (SyncResultView.of_result(run) if run else None for run in (one.last, one.dry_run))
        return cls(one.source, last, dry_run, one.requested, one.is_late(now))


class SyncList(Struct, frozen=True):
    """All sources, by name: at most 50."""

    sources: Sequence[SyncSourceView]


async def list_all(request: PlainRequest) -> Response:
    """Return the sources with their last runs."""
    syncs = request.services.core.directory.syncs
    found = await syncs.all(request.tenant)
    return Response(SyncList([SyncSourceView.of(one, syncs.now()) for one in found]))


async def report(request: Request[SyncReport, NoParameters]) -> Response:
    given = structs.asdict(request.body)
    dry_run = given.pop("dry_run")
    result = SyncResult(**given)
    syncs = request.services.core.directory.syncs
    return Response(
        SyncResultView.of_result(await syncs.report(request.tenant, _source(request), result, dry_run=dry_run))
    )


async def ask(request: Request[SyncRunRequest, NoParameters]) -> Response:
    """Ask the program that watches a source for a run."""
    syncs = request.services.core.directory.syncs
    await syncs.request(request.tenant, _source(request), dry_run=request.body.dry_run)
    return no_content()


async def forget(request: PlainRequest) -> Response:
    """Forget a source; its people stay."""
    await request.services.core.directory.syncs.forget(request.tenant, _source(request))
    return no_content()


def _source(request: AnyRequest) -> str:
    """Return the name of a source. Raises `InvalidFields` WRONG_VALUE."""
    source = request.part("source")
    if not is_source(source):
        raise invalid_field("source", "WRONG_VALUE", "A source has small letters, digits and _, at most 27.")
    return source


ROUTES: Routes = (
    Route("GET", "/v1/syncs", "List the sources of people with their last runs", "manage", list_all, 200, SyncList,
          people=People.BY_SCOPE),
    Route("PUT", "/v1/syncs/{source}", "Report the result of a sync", "manage", report, 200, SyncResultView,
          body=SyncReport, repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("DELETE", "/v1/syncs/{source}", "Forget a source; its people stay", "manage", forget, 204,
          repeats=Repeats.STORED, people=People.BY_SCOPE),
    Route("POST", "/v1/syncs/{source}/runs", "Ask the program that watches a source for a run", "manage", ask, 204,
          body=SyncRunRequest, repeats=Repeats.STORED, people=People.BY_SCOPE),
)  # fmt: skip
