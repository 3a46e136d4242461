"""Delivery reports of Kannel, whose parameters `courier.REPORT_QUERY` has added to the address. Pure."""

from collections.abc import Mapping
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from core.errors import Invalid
from core.model.field_types import INT64
from core.model.states import Status
from couriers.channel import ReadReports, Report


class DeliveryReportQuery(Struct, frozen=True):
    """The delivery report of a gateway. Gateways add parameters of their own, so unknown ones are ignored."""

    token: Annotated[str, Meta(min_length=1, max_length=1024)]
    status: Annotated[
        int,
        Meta(
            ge=0,
            le=INT64 - 1,
            description="bits: 1 delivered, 2 failed, 4 buffered, 8 accepted, 16 rejected",
            extra_json_schema={"not": {"multipleOf": 32}},
        ),
    ]
    id: Annotated[str, Meta(max_length=256)] | UnsetType = UNSET


Fields = DeliveryReportQuery

# Kannel's dlr-mask, user guide 3.6.3. A report may have several bits; the first one here decides.
STATUS_BITS = (
    (1, Status.DELIVERED),
    (2, Status.FAILED),
    (16, Status.FAILED),  # rejected by the SMSC
    (8, Status.SENT),  # accepted by the SMSC
    (4, Status.SENT),  # buffered in the SMSC
)


def read_reports(query: DeliveryReportQuery, address: Mapping[str, str]) -> ReadReports:
    """Return the report. Raises Invalid REPORT_MALFORMED."""
    for bit, status in STATUS_BITS:
        if query.status & bit:
            return ReadReports([Report(status, query.id or "", query.token)])
    raise Invalid("REPORT_MALFORMED", "The status has none of the bits 1, 2, 4, 8, 16.", "status")
