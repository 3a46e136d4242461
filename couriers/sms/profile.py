"""A profile: how an SMS provider with an HTTP interface is called, and what its answers mean. Data, written in YAML.

    send     one request for one message; its answer is read by paths, and the first rule that fits decides
    status   asks for a message by our own id, before an outcome is unknown
    reports  how the provider reports delivery: its fields are read by `ProfileReports`
    balance  what is left on the account

What no rule names is unknown, never a retry. docs/connect-sms.md explains how to write one.
"""

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import yaml
from msgspec import Meta, Struct

from core.errors import NotFound, SetupError
from core.model.field_types import whole
from core.model.states import Status
from couriers.channel import ReadReports, Report

KANNEL = "kannel"

Path_ = Annotated[str, Meta(min_length=1, max_length=200)]
Meaning = Literal["sent", "failed", "deferred", "stop", "unknown"]
PLACEHOLDERS = frozenset({"username", "password", "sender", "number", "digits", "text", "own_id", "id", "report_url"})


class SmsRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """One HTTP request. A field whose value is empty is left out."""

    url: Annotated[str, Meta(pattern="^https?://")]
    method: Literal["GET", "POST"] = "POST"
    auth: Literal["none", "basic", "bearer"] = "none"
    body: Literal["query", "form", "json"] = "form"
    fields: Mapping[str, str] = {}


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """`http`, `code`: values of which one must fit; `has_id`: the answer has an id; `contains`: a part of the body.
    `reason` of a failure; `wait`: seconds of a `deferred`; `account`: it concerns all messages.
    """

    then: Meaning
    http: Sequence[int] = ()
    code: Sequence[int | str] = ()
    has_id: bool | None = None
    contains: str = ""
    reason: Literal["recipient_unreachable", "content_refused", "blocked", "privacy"] = "recipient_unreachable"
    wait: Annotated[int, Meta(ge=1, le=86400)] = 60
    account: bool = False
    why: str = ""

    def fits(self, answer: "Read") -> bool:
        return (
            (not self.http or answer.http in self.http)
            and (not self.code or answer.code in map(str, self.code))
            and (self.has_id is None or self.has_id == bool(answer.id))
            and self.contains in answer.body
        )


class SmsAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """`id`, `code`: paths in JSON, such as `sms.*.sms_id`; of several paths of the code the first with a value. With
    `format: text` numbers of lines, from 0.
    """

    rules: Sequence[Rule]
    format: Literal["json", "text"] = "json"
    id: str = ""
    code: str | Sequence[str] = ""


class SmsStatus(Struct, frozen=True, forbid_unknown_fields=True):
    """The request about a message by our own id; `sent` in its rules: the provider has it."""

    request: SmsRequest
    answer: SmsAnswer


class Reports(Struct, frozen=True, forbid_unknown_fields=True):
    """`by`: `token`, each message names its own address; `id`, one address is set in the account of the provider.
    `records`: what the names of the fields begin with whose lines are reports, if one call has several.
    """

    by: Literal["token", "id"]
    id: Path_
    state: Path_
    states: Mapping[str, Literal["delivered", "failed", "sent"]]
    records: str = ""
    reply: str = ""


class Balance(Struct, frozen=True, forbid_unknown_fields=True):
    """The request for the money on the account; `refused`: the rules of a wrong account."""

    request: SmsRequest
    path: Path_
    refused: Sequence[Rule] = ()
    code: str = ""


class Profile(Struct, frozen=True, forbid_unknown_fields=True):
    """`needs`: the settings without which it cannot be used."""

    name: Annotated[str, Meta(pattern=whole("[a-z0-9.-]{1,32}"))]
    send: SmsRequest
    answer: SmsAnswer
    status: SmsStatus | None = None
    reports: Reports | None = None
    balance: Balance | None = None
    most_parts: Annotated[int, Meta(ge=1, le=255)] = 10
    needs: Sequence[Literal["username", "password", "from"]] = ("password",)


class Read(Struct, frozen=True):
    """The content of an answer."""

    http: int
    body: str
    code: str = ""
    id: str = ""


def own_profiles() -> list[str]:
    """Return the names of Ada's own profiles."""
    return sorted(one.name.removesuffix(".yaml") for one in _folder().iterdir() if one.name.endswith(".yaml"))


def load_profile(name: str) -> Profile:
    """Return one of Ada's own profiles, or that of a file. Raises SetupError."""
    if name in own_profiles():
        return _parsed(_folder().joinpath(f"{name}.yaml").read_text(encoding="utf-8"), name)
    path = Path(name)
    if not path.is_file():
        known = ", ".join([KANNEL, *own_profiles()])
        raise SetupError(f"ADA_SMS_PROFILE is {name}, which is no file and none of {known}")
    try:
        return _parsed(path.read_text(encoding="utf-8"), name)
    except (OSError, UnicodeError) as error:
        raise SetupError(f"ADA_SMS_PROFILE is {name}, which cannot be read ({type(error).__name__})") from None


def _folder() -> Any:
    return resources.files("couriers.sms") / "profiles"


def _parsed(text: str, name: str) -> Profile:
    try:
        profile = msgspec.convert(yaml.safe_load(text), Profile)
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        line = f", line {place.line + 1}" if place else ""
        raise SetupError(f"ADA_SMS_PROFILE: {name}{line} is not YAML") from None
    except msgspec.ValidationError as error:
        raise SetupError(f"ADA_SMS_PROFILE: {name} is no profile: {error}") from None
    _check_placeholders(profile, name)
    return profile


def _check_placeholders(profile: Profile, name: str) -> None:
    asked = [profile.status.request] if profile.status else []
    asked += [profile.balance.request] if profile.balance else []
    for request in (profile.send, *asked):
        for text in (request.url, *request.fields.values()):
            try:
                text.format(**dict.fromkeys(PLACEHOLDERS, ""))
            except (KeyError, ValueError, IndexError) as error:
                raise SetupError(f"ADA_SMS_PROFILE: {name}: {text!r} has a wrong placeholder ({error})") from None


def read_answer(answer: SmsAnswer, http: int, body: str) -> Read:
    """Return the content of an answer. An answer that cannot be read has no code and no id."""
    codes = [answer.code] if isinstance(answer.code, str) else answer.code
    lines = body.splitlines() if answer.format == "text" else []
    found = None if answer.format == "text" else decoded(body)

    def value(path: str) -> str:
        return _line(lines, path) if answer.format == "text" else value_at(found, path)

    return Read(http, body, next(filter(None, map(value, codes)), ""), value(answer.id))


def decoded(body: str) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None


def value_at(found: Any, path: str) -> str:
    """Return the value at a path as a text, "" if there is none. `*`: the first one of a list or an object."""
    if not path:
        return ""
    for name in path.split("."):
        found = _step(found, name)
    if found is None or isinstance(found, dict | list):
        return ""
    return str(found).lower() if isinstance(found, bool) else str(found)


def _step(found: Any, name: str) -> Any:
    if isinstance(found, dict):
        return next(iter(found.values()), None) if name == "*" else found.get(name)
    if isinstance(found, list):
        position = 0 if name == "*" else int(name) if name.isdecimal() else len(found)
        return found[position] if position < len(found) else None
    return None


def _line(lines: Sequence[str], path: str) -> str:
    return lines[int(path)].strip() if path.isdecimal() and int(path) < len(lines) else ""


def decide(rules: Sequence[Rule], answer: Read) -> Rule | None:
    """Return the first rule that fits, None if none does."""
    return next((rule for rule in rules if rule.fits(answer)), None)


def read_reports(reports: Reports, fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the id and the state of each report in a call; the state is "" for one without a meaning."""
    records: list[Any] = [fields]
    if reports.records:
        records = [str(value).splitlines() for name, value in fields.items() if name.startswith(reports.records)]
    return [(value_at(one, reports.id), reports.states.get(value_at(one, reports.state), "")) for one in records]


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
