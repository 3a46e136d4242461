"""Deliveries to a person."""

from collections.abc import Mapping

from msgspec import UNSET, Struct, UnsetType

from core.deliveries import of_person
from core.model.clock import write_time
from core.model.json_form import JsonObject
from core.model.states import DeliveryState
from delivery.api.deliveries.histories import ListCursor, OutcomeView
from delivery.api.deliveries.recipients import ListedRecipient
from delivery.api.deliveries.texts_of_others import without_texts
from delivery.http.context import Request, Response, next_page_link
from delivery.http.fields import Limit, RequestModel
from delivery.http.input.reading import optional, part
from delivery.http.route import NEXT_PAGE, People, Route, Routes


class PersonDeliveryQuery(RequestModel, frozen=True):
    """The page of the deliveries to a person."""

    cursor: ListCursor | UnsetType = UNSET
    limit: Limit | UnsetType = UNSET


class PersonDeliveryView(Struct):
    """A delivery to a person, and what became of it for that person. `why`: why the person was not reached, if so.
    `text_hidden`: as of a delivery of a list.
    """

    id: str
    created_at: str
    sender: JsonObject
    text: str
    state: DeliveryState
    outcomes: Mapping[str, OutcomeView]
    why: str | None
    text_hidden: bool | UnsetType = UNSET

    @classmethod
    def of(cls, one: of_person.PersonDelivery, *, is_hidden: bool) -> "PersonDeliveryView":
        history = without_texts(one.history) if is_hidden else one.history
        recipient = ListedRecipient.of(one.recipient)
        known = history.key.id, write_time(history.created_at), history.sender, history.text, history.state
        return cls(*known, recipient.outcomes, recipient.why, is_hidden or UNSET)


class PersonDeliveryPage(Struct):
    """A page of deliveries to a person, newest first. It may be short although there is a `next` one."""

    deliveries: list[PersonDeliveryView]
    next: str | None


_DELIVERIES = 20
"""Deliveries of a page whose `limit` is not given."""


async def list_deliveries(request: Request[None, PersonDeliveryQuery]) -> Response:
    """Return a page of what was sent to a person, newest first; a person who asks sees those that it may see."""
    query, identity = request.query, request.identity
    found, cursor = await request.services.core.deliveries.of_person.page(
        request.tenant,
        part(request, "id"),
        optional(query.cursor),
        query.limit or _DELIVERIES,
        lambda position: identity.may_see_deliveries_of(position.key.sender),
    )
    page = PersonDeliveryPage(
        [PersonDeliveryView.of(one, is_hidden=not identity.acts_for(one.history.key.sender)) for one in found], cursor
    )
    return Response(page, headers=next_page_link(request.http, cursor))


ROUTES: Routes = (
    Route("GET", "/v1/users/{id}/deliveries", "List what was sent to a person, newest first, with its outcomes",
          "manage", list_deliveries, 200, PersonDeliveryPage, query=PersonDeliveryQuery, headers=NEXT_PAGE,
          people=People.BY_SCOPE),
)  # fmt: skip
