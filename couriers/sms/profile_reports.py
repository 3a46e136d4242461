"""Delivery reports of a provider with a profile, whose fields the profile names. Pure."""

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from core.errors import NotFound
from core.model.states import Status
from couriers.channel import ReadReports, Report
from couriers.sms.profile import KANNEL, Profile, load_profile, read_reports


class ProfileReportQuery(Struct, frozen=True):
    """The address of an SMS provider's reports. The other fields are those that its profile names."""

    token: Annotated[str, Meta(max_length=1024, description="of the message, if it names its own address")] = ""
    secret: Annotated[str, Meta(max_length=1024, description="ADA_INBOUND_SMS_SECRET, if it does not")] = ""


Fields = ProfileReportQuery


class ProfileReports:
    """Reads the reports of one profile, None if there is none."""

    def __init__(self, profile: Profile | None) -> None:
        self._profile = profile

    def read_reports(self, fields: Mapping[str, Any], address: Mapping[str, str]) -> ReadReports:
        """Return the reports, without those that have no meaning. Raises NotFound PROFILE_NOT_SET_UP."""
        profile = self._profile
        if profile is None or profile.reports is None or address["profile"] != profile.name:
            raise NotFound("PROFILE_NOT_SET_UP", "ADA_SMS_PROFILE is not this one.")
        is_by_token = profile.reports.by == "token"
        token = address.get("token", "") if is_by_token else ""
        found = [(name, state) for name, state in read_reports(profile.reports, fields) if state]
        reports = [Report(Status(state), name, token) for name, state in found]
        return ReadReports(reports, "" if is_by_token else profile.name, profile.reports.reply or "ok")


def open_profile(name: str) -> ProfileReports:
    """Return the reader of the setting's profile. Raises SetupError."""
    return ProfileReports(None if name in ("", KANNEL) else load_profile(name))
