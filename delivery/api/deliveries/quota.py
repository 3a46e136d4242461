"""How much of its quota a sender has used."""

import math

from msgspec import UNSET, Struct, UnsetType

from core.model.delivery import QuotaState
from core.model.field_types import Label, Name
from delivery.http.context import Request, Response
from delivery.http.fields import RequestModel
from delivery.http.route import People, Route, Routes


class QuotaQuery(RequestModel, frozen=True):
    """The sender. `role`: of a sender that the directory does not know; default: as in its last delivery."""

    sender: Name
    role: Label | UnsetType = UNSET


class QuotaResponse(Struct):
    """`used`: deliveries that count towards the quota now. `limit` is null without a quota. `resets_in`: seconds until
    the first of them no longer counts, 0 if there is none.
    """

    used: int
    limit: int | None
    resets_in: int

    @classmethod
    def of(cls, state: QuotaState) -> "QuotaResponse":
        return cls(state.used, state.limit, math.ceil(state.resets_in.total_seconds()))


async def show_quota(request: Request[None, QuotaQuery]) -> Response:
    """Return how much of its quota a sender has used."""
    query = request.query
    request.check_own(query.sender, "sender")
    return Response(
        QuotaResponse.of(await request.services.core.sending.quota(request.tenant, query.sender, query.role or None))
    )


ROUTES: Routes = (
    Route("GET", "/v1/quota", "How much of its quota a sender has used", "read", show_quota, 200, QuotaResponse,
          query=QuotaQuery, people=People.OWN),
)  # fmt: skip
