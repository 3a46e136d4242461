"""What the loft reports of a pigeon."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from core.model.states import Status
from couriers.channel import ReadReports, Report


class Fields(Struct, frozen=True):
    token: str
    state: Literal["landed", "lost"]


def read_reports(flight: Fields, address: Mapping[str, str]) -> ReadReports:
    status = Status.DELIVERED if flight.state == "landed" else Status.FAILED
    return ReadReports([Report(status, "", flight.token)])
