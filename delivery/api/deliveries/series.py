"""Series: a message that is sent again and again. A person has its own; a key those of the tenant."""

from collections.abc import Sequence
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgspec import UNSET, Meta, Struct, UnsetType, convert, to_builtins
from msgspec.structs import replace

from core.errors import Invalid
from core.model.clock import from_ms, to_ms, write_time
from core.model.cron import cron_of
from core.model.delivery import NewDelivery
from core.model.history_key import Id
from core.model.json_form import Json, JsonObject
from core.model.people import canonical_id, id_text
from core.orders import Addressee, Order
from core.orders.series import TAG, Series, SeriesState, SeriesStore
from delivery.api.deliveries.sending import DeliveryRequest
from delivery.http.context import ApiRequest, Request, Response, next_page_link, no_content
from delivery.http.fields import Limit, RequestModel, Time, cursor_form, read_time
from delivery.http.options import Options
from delivery.http.route import NEW_OBJECT, NEXT_PAGE, NoParameters, People, PlainRequest, Repeats, Route, Routes

SHOWN_MOMENTS = 3
When = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=128,
        description="a time that recurs: every Monday 8:00, по будням в 9:00, or five fields of cron",
    ),
]
Zone = Annotated[
    str, Meta(min_length=1, max_length=64, description="of the tz database; default: the zone of the tenant")
]


class NewSeries(RequestModel, frozen=True):
    """A new series. `message`: a delivery as for `POST /v1/deliveries`, without what holds for one moment only.
    `until`: nothing is sent after it.
    """

    message: DeliveryRequest
    when: When
    zone: Zone | UnsetType = UNSET
    until: Time | UnsetType | None = UNSET


class SeriesChange(RequestModel, frozen=True):
    """A change of a series. `state`: `stopped` sends nothing more, `active` goes on with the next moment."""

    message: DeliveryRequest | UnsetType = UNSET
    when: When | UnsetType = UNSET
    zone: Zone | UnsetType = UNSET
    until: Time | UnsetType | None = UNSET
    state: Literal["active", "stopped"] | UnsetType = UNSET


class MomentProblem(Struct, frozen=True):
    """The reason why nothing was sent at the last moment."""

    code: str
    detail: str
    at: str


class SeriesView(Struct, frozen=True):
    """A series. `when`: as it was written; `cron`: what it means. `next`: its next moments, at most three, before quiet
    hours move them. `sent`: moments at which it was; `missed`: those at which no process was there. `problem`: of the
    last moment; null if it was sent. Its deliveries have the tag `tag`. Absent except after a change of the message:
    `unfilled`, its marks that nothing fills; `empty_office`, true if replies go to an office without members.
    """

    id: str
    state: SeriesState
    when: str
    cron: str
    zone: str
    until: str | None
    next: Sequence[str]
    last: str | None
    last_delivery: str | None
    sent: int
    missed: int
    problem: MomentProblem | None
    tag: str
    created_at: str
    sender: Id
    message: JsonObject
    unfilled: Sequence[str] | UnsetType = UNSET
    empty_office: bool | UnsetType = UNSET

    @classmethod
    def of(cls, one: Series, checked: NewDelivery | None = None) -> "SeriesView":
        failed = one.problem
        problem = MomentProblem(failed.code, failed.detail, write_time(from_ms(failed.at))) if failed else None
        return cls(
            one.id,
            one.state,
            one.words,
            one.cron,
            one.zone,
            _time(one.until),
            [write_time(from_ms(at)) for at in one.moments(SHOWN_MOMENTS)],
            _time(one.last),
            one.last_delivery or None,
            one.sent,
            one.missed,
            problem,
            TAG + one.id,
            write_time(from_ms(one.created)),
            one.sender,
            dict(one.message),
            (checked.unfilled if checked else ()) or UNSET,
            (checked.empty_office if checked else False) or UNSET,
        )


class SeriesPreview(Struct, frozen=True):
    """What times mean. `next`: the first moments, at most three, before quiet hours move them."""

    cron: str
    zone: str
    next: Sequence[str]


class SeriesQuery(RequestModel, frozen=True):
    """The page of the list."""

    cursor: Annotated[str, cursor_form("[0-9]{1,9}")] | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class SeriesList(Struct, frozen=True):
    """A page of series, the oldest first. `next`: the cursor of the next page."""

    series: Sequence[SeriesView]
    next: str | None


def _time(ms: int) -> str | None:
    return write_time(from_ms(ms)) if ms else None


def order_of(series: Series, options: Options) -> Order:
    """Return the order of a series as its message says it. Raises `InvalidFields`."""
    return convert(dict(series.message), DeliveryRequest).order(series.tenant, options.max_days_ahead)


async def list_all(request: Request[None, SeriesQuery]) -> Response:
    start, limit = int(request.query.cursor or 0), request.query.limit or 100
    found = await _store(request).list(request.tenant, _person(request))
    cursor = str(start + limit) if start + limit < len(found) else None
    page = SeriesList([SeriesView.of(one) for one in found[start : start + limit]], cursor)
    return Response(page, headers=next_page_link(request.http, cursor))


async def create(request: Request[NewSeries, NoParameters]) -> Response:
    """Keep a series, after its message was checked as a send would be."""
    series, checked = await _new(request)
    made = await _store(request).create(series, request.services.core.sending.clock())
    return Response(SeriesView.of(made, checked), 201, {"Location": f"/v1/series/{made.id}"})


async def preview(request: Request[NewSeries, NoParameters]) -> Response:
    """Return when a series of the same body would send. Nothing is written."""
    series, _ = await _new(request)
    moments = series.begun(request.services.core.sending.clock()).moments(SHOWN_MOMENTS)
    return Response(SeriesPreview(series.cron, series.zone, [write_time(from_ms(at)) for at in moments]))


async def _new(request: Request[NewSeries, NoParameters]) -> tuple[Series, NewDelivery]:
    """Return a new series that is not yet kept, and its delivery as a send would make it now. Raises Refused."""
    body, person, caller = request.body, _person(request), request.caller
    checked = await _check(request, body.message)
    series = Series(
        tenant=request.tenant,
        sender=canonical_id(body.message.sender.id),
        message=to_builtins(body.message),
        words=body.when,
        cron=cron_of(body.when),
        zone=_zone(body.zone or str(request.timezone)),
        until=_until(body.until, request),
        person="" if person is None else id_text(person),
        is_admin=caller.is_admin,
        may_be_urgent=caller.may_be_urgent,
    )
    _refuse_without_moment(series.begun(request.services.core.sending.clock()))
    return series, checked


async def read(request: PlainRequest) -> Response:
    return Response(SeriesView.of(await _store(request).read(request.tenant, _id(request), _person(request))))


async def change(request: Request[SeriesChange, NoParameters]) -> Response:
    """Change, stop or go on with a series."""
    body, now = request.body, request.services.core.sending.clock()
    checked = await _check(request, body.message) if body.message else None
    changes = _changes(request)

    def changed(one: Series) -> Series:
        new = replace(one, **changes)
        if body.state == "stopped" or (one.state is SeriesState.STOPPED and not body.state):
            return new.stopped()
        if {"cron", "zone", "until"} & changes.keys() or one.state is not SeriesState.ACTIVE:
            new = new.begun(now)
            _refuse_without_moment(new)
        return new

    series = await _store(request).change(request.tenant, _id(request), changed, _person(request))
    return Response(SeriesView.of(series, checked))


def _changes(request: Request[SeriesChange, NoParameters]) -> dict[str, Json]:
    """Return the fields of a series that change. Raises Invalid."""
    body, changes = request.body, dict[str, Json]()
    if body.when:
        changes |= {"words": body.when, "cron": cron_of(body.when)}
    if body.zone:
        changes["zone"] = _zone(body.zone)
    if not isinstance(body.until, UnsetType):
        changes["until"] = _until(body.until, request)
    if body.message:
        changes |= {"message": to_builtins(body.message), "sender": canonical_id(body.message.sender.id)}
    return changes


async def delete(request: PlainRequest) -> Response:
    """Stop a series and remove it; its deliveries stay."""
    await _store(request).change(request.tenant, _id(request), lambda _: None, _person(request))
    return no_content()


async def _check(request: ApiRequest, message: DeliveryRequest) -> NewDelivery:
    """Refuse what a send would refuse, and what holds for one moment only; return its delivery. Raises Refused."""
    for name in ("history_key", "deliver_at", "expires_at"):
        if getattr(message, name):
            raise _not_for_series(f"message.{name}")
    if message.answer and message.answer.until:
        raise _not_for_series("message.answer.until")
    for number, one in enumerate(message.recipients):
        if isinstance(one, Addressee) and (one.table or one.follow_up):
            raise _not_for_series(f"message.recipients.{number}")
    order = message.order(request.tenant, request.options.max_days_ahead)
    attachments = order.delivery.content.attachments if order.delivery.content else ()
    for number, attached in enumerate(attachments):
        if attached.file:
            raise _not_for_series(f"message.content.attachments.{number}.file")
    return (await request.services.core.sending.preview(order, request.caller)).delivery


def _not_for_series(path: str) -> Invalid:
    detail = "A series has no time of its own, no table, no follow-up and no uploaded file: these are for one delivery."
    return Invalid("NOT_FOR_SERIES", detail, path)


def _zone(name: str) -> str:
    try:
        return str(ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise Invalid("ZONE_UNKNOWN", f"{name!r} is no time zone such as Europe/Moscow.", "zone") from None


def _until(text: str | UnsetType | None, request: ApiRequest) -> int:
    return to_ms(read_time(text, "until", request.options.max_days_ahead)) if text else 0


def _refuse_without_moment(series: Series) -> None:
    if not series.next:
        raise Invalid("SERIES_WITHOUT_MOMENT", "The series would end before its first moment.", "until")


def _store(request: ApiRequest) -> SeriesStore:
    return SeriesStore(request.services.core.store)


def _person(request: ApiRequest) -> Id | None:
    person = request.identity.person
    return person.id if person else None


def _id(request: ApiRequest) -> str:
    return request.part("id")


ROUTES: Routes = (
    Route("GET", "/v1/series", "List the messages that are sent again and again", "send", list_all, 200, SeriesList,
          query=SeriesQuery, headers=NEXT_PAGE, people=People.OWN),
    Route("POST", "/v1/series", "Send a message again and again, at times that recur", "send", create, 201, SeriesView,
          body=NewSeries, repeats=Repeats.STORED, headers=NEW_OBJECT, people=People.OWN),
    Route("POST", "/v1/series/preview", "When a series of the same body would send", "send", preview, 200,
          SeriesPreview, body=NewSeries, people=People.OWN),
    Route("GET", "/v1/series/{id}", "Read a series", "send", read, 200, SeriesView, people=People.OWN),
    Route("PATCH", "/v1/series/{id}", "Change, stop or go on with a series", "send", change, 200, SeriesView,
          body=SeriesChange, repeats=Repeats.STORED, people=People.OWN),
    Route("DELETE", "/v1/series/{id}", "Stop and remove a series; its deliveries stay", "send", delete, 204,
          repeats=Repeats.STORED, people=People.OWN),
)  # fmt: skip
