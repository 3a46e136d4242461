"""The channels: what Ada has to know of each, beside what its courier does.

A folder `couriers/<name>` with a channel.py is a channel; its CHANNEL is the record. An installed package adds one by
an entry point: in the group `ada.channels` it names a record, in the group `ada.couriers` only the module of a courier.
A record names modules and imports none, so a provider's library is imported by the processes that use it.
"""

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import couriers
from core.errors import SetupError
from core.model.contacts.addresses import AddressForm
from core.model.content import Content, Display, Feature, KeyboardLimits, Limits
from core.model.states import Status
from core.sentence import add_list

_LAST = 1000
COURIERS_GROUP, CHANNELS_GROUP = "ada.couriers", "ada.channels"


@dataclass(frozen=True, slots=True)
class ChannelWebhook:
    """The provider posts updates to `path`. A header contains the secret of the setting `secret`. `title`: says what
    is posted, in the OpenAPI document. `url`: the setting by which the bot has updates posted, "" if it is not the bot
    that asks for it.
    """

    path: str
    header: str
    secret: str
    title: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class Callback:
    """The provider posts what people write to `path`, with the secret of the setting `secret` among the fields, which
    are a JSON object or, with `is_form`, parameters of the address or a form. `module` has `Fields`, a struct that
    describes them, `update_of`, which returns the update for `read_arrival` or None, and `ANSWER`, a text. A JSON
    object that is no update is answered by the text of the setting `confirmation`. `title`: as of a webhook. If it
    `is_form` and the sandbox simulates the channel, `module` has `get_url(api, secret)`, which its provider calls.
    """

    path: str
    secret: str
    title: str
    module: str
    is_form: bool = False
    confirmation: str = ""


class Report(NamedTuple):
    """The state of a message. `reference`: the provider's id of it. `token`: of the address for its reports, which
    proves the report.
    """

    status: Status
    reference: str = ""
    token: str = ""


class ReadReports(NamedTuple):
    """The reports of one call. `account`: of the courier, if messages are found by their references; a secret then
    proves the call. `answer`: a text, for reports by a profile.
    """

    reports: Sequence[Report]
    account: str = ""
    answer: str = "ok"


@dataclass(frozen=True, slots=True)
class ReportCallback:
    """The provider reports to `report_path`, by parameters of the address or a form, what became of messages. `module`
    has `Fields`, a struct that describes these, and `read_reports(fields, address)`, which returns `ReadReports`;
    `address` has its parameters. `secret`: the setting of the secret in the address, if reports have no tokens.
    `title`: as of a webhook.

    `profile`: a setting that says what the fields are, which may then be JSON and are not checked; the path ends with
    its name, which `address` has too. `module` has `open_profile`, whose result has `read_reports`. `default_profile`:
    its value that means the provider without one.
    """

    title: str
    module: str
    secret: str = ""
    profile: str = ""
    default_profile: str = ""


@dataclass(frozen=True, slots=True)
class Receiving:
    """The way on which messages of people reach Ada.

    `events`: a module with `read_arrival`, which makes an event of an update, and `read_reach` if updates say who can
    be reached; if an event comes in parts, it `gathers` them by `merge`. `source`: within what the ids of events are
    unique, "" for the tenant. `receiver`: a module with `open_receiver`, "" if all updates are posted to the HTTP API.
    `webhook`, `callback`: how an update is posted.

    `process`: NAME in `./ada bot NAME`. `needs`: settings of which one must be set for it, none if an account is
    enough. `reads_section`: the process reads the settings of the channel. It `makes_calls` at once, such as the mark
    that the bot is writing; the answer to a press has at most `longest_answer` characters, 0 if a press has none.
    `numbers`: people answer a question by the numbers of its options.
    """

    process: str
    events: str
    gathers: bool = False
    source: str = ""
    receiver: str = ""
    webhook: ChannelWebhook | None = None
    callback: Callback | None = None
    needs: frozenset[str] = frozenset()
    reads_section: bool = False
    makes_calls: bool = False
    longest_answer: int = 0
    numbers: bool = False

    @property
    def imports(self) -> tuple[str, ...]:
        """Return what its process imports."""
        return tuple(filter(None, (self.events, self.receiver)))


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel. `courier`: a module with `Settings` and `open`. `place`: where it stands in lists, the smallest first.
    `titles`: language → as people know it; without that of their language, in English; none: its name.

    `section`: in the names of its settings, ADA_<SECTION>_…; "" for its name. `account`: the setting that is the
    account, "" if any of the section makes one. `no_account`: settings of the section that make none, such as a price;
    a wrong name is not among them, so it is reported. `account_settings`: all that make one, of which some may be
    optional; (`account`,) if there are none. `of_installation`: settings of the section that are the same for
    all accounts. `files`: settings that may be the path of a file. `is_per_bot`: each bot can have an account of its
    own. `is_simulated`: the sandbox simulates it.
    `simulator`: a module with `start_simulator(directory)`, which returns a `Simulator`. `limits_replies`: a bot
    answers an address only so often, because a machine may answer there. `takes_replies_by_mail`: its messages are
    mails, and a reply to one comes to ADA_INBOUND_MAIL. `has_topics`: an office can answer in a group chat of it, with
    a topic for each person. `address`: the form of its addresses, None if every text is
    one. `bot_place`: as `place`, for a bot that writes
    to a person by itself and chooses the channel; without it a channel in which people write is among the last.
    `is_known_at_start`: deliveries that name no channel are planned for it also before its courier has run once.
    `in_sms`: a text is sent and paid in parts. `column_names`: other names of the column `contacts.<name>` in files of
    people, in the form of `core.directory.importing.headers.normal`. `samples`: the addresses of the people of
    `./ada demo`, whose numbers are 1 to 5, at the simulated provider.
    `library`: the module of an extra that its courier needs, `pip install 'ada[<name>]'`.
    `shows`: what it shows besides a plain text; `as_text`: what becomes lines of the text, with the buttons if
    `keyboard`, unless it is None, cannot have them.
    `shares_bot_with`: a channel that may have the same bot; its process then gets what people write to the bot.
    `outcomes`: a module with `answer_tables`, which returns what the page of answers shows of the provider's, title →
    rows; "" if they are not documented.
    `api_address`: the setting of the address of Ada's API to which its provider reports; `up` sets it.
    `problems`: code → status of what its module refuses in what the provider posts; `sentences`: the list with
    `problem.CODE` of each, in the form of `core.sentence`.
    `readers`: the processes that receive a secret of the channel which is a common setting, as `cli.settings.secrets`
    names them.
    """

    name: str
    courier: str
    place: int = 100
    titles: Mapping[str, str] = field(default_factory=dict)
    section: str = ""
    account: str = ""
    no_account: frozenset[str] = frozenset()
    account_settings: tuple[str, ...] = ()
    of_installation: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    is_per_bot: bool = False
    is_simulated: bool = False
    simulator: str = ""
    limits_replies: bool = False
    takes_replies_by_mail: bool = False
    has_topics: bool = False
    address: AddressForm | None = None
    bot_place: int | None = None
    is_known_at_start: bool = False
    in_sms: bool = False
    column_names: Sequence[str] = ()
    samples: Mapping[int, str] = field(default_factory=dict)
    library: str = ""
    shares_bot_with: str = ""
    outcomes: str = ""
    api_address: str = ""
    problems: Mapping[str, int] = field(default_factory=dict)
    sentences: Path | None = None
    readers: Mapping[str, frozenset[str]] = field(default_factory=dict)
    receiving: Receiving | None = None
    reports: Sequence[ReportCallback] = ()
    shows: frozenset[Feature] = frozenset(Feature)
    as_text: frozenset[Feature] = frozenset()
    keyboard: KeyboardLimits | None = None

    def written_as_text(self, content: Content) -> frozenset[Feature]:
        """Return the features that become lines of the text in this content."""
        return Display(self.shows, self.as_text, Limits(keyboard=self.keyboard)).written_as_text(content)

    @property
    def settings_of_account(self) -> tuple[str, ...]:
        """Return the settings that make an account; none for a channel without one."""
        return self.account_settings or ((self.account,) if self.account else ())

    @property
    def inbound_secret(self) -> str:
        """Return the setting of the secret of what the provider posts; "" if nothing with a secret is posted."""
        received = [self.receiving.callback, self.receiving.webhook] if self.receiving else []
        return next((one.secret for one in (*received, *self.reports) if one and one.secret), "")

    @property
    def inbound_settings(self) -> frozenset[str]:
        """Return the settings by which the HTTP API recognises the provider, and reads what it posts."""
        callback = self.receiving.callback if self.receiving else None
        read = {callback.confirmation if callback else "", *(way.profile for way in self.reports)}
        return frozenset({self.inbound_secret, *read} - {""})

    def has_profile(self, configuration: Callable[[str], str]) -> bool:
        """Return whether a profile says what its provider posts. `configuration`: name of a setting → its text."""
        return any(one.profile and configuration(one.profile) not in ("", one.default_profile) for one in self.reports)

    @property
    def report_path(self) -> str:
        return f"/v1/receipts/{self.name}"


class Simulator(Protocol):
    """A simulated provider. `environment`: the settings by which the channel uses it."""

    environment: Mapping[str, str]

    async def close(self) -> None:
        """Stop it."""
        ...


@cache
def channels() -> Mapping[str, Channel]:
    """Return all channels by name, in the order of lists. No installed package replaces one of Ada's own."""
    own = [_own(name) for name in _folders()]
    points = {**_points(COURIERS_GROUP), **_points(CHANNELS_GROUP)}
    installed = [_installed(point) for name, point in points.items() if name not in {one.name for one in own}]
    for one in (*own, *installed):
        if one.sentences:
            add_list(one.sentences)
    return {one.name: one for one in sorted([*own, *installed], key=lambda one: (one.place, one.name))}


def channels_of_bots() -> Sequence[str]:
    """Return the channels in which a bot writes to a person by itself, the best first."""
    found = {name: one for name, one in channels().items() if one.bot_place or one.receiving}
    return sorted(found, key=lambda name: found[name].bot_place or _LAST)


def receiving() -> Mapping[str, Receiving]:
    """Return how the messages of people reach Ada, for the channels in which they do."""
    return {name: one.receiving for name, one in channels().items() if one.receiving}


def mailed_channel() -> str:
    """Return the first channel whose messages are mails; "" if there is none."""
    return next((name for name, one in channels().items() if one.takes_replies_by_mail), "")


def channels_in_sms() -> Sequence[str]:
    """Return the channels in which a text is sent and paid in parts."""
    return [name for name, one in channels().items() if one.in_sms]


def topics_channel() -> str:
    """Return the first channel whose group chats have topics; "" if there is none."""
    return next((name for name, one in channels().items() if one.has_topics), "")


def courier_module(channel: Channel) -> Any:
    """Return the module of a courier, with `Settings` and `open`. Raises SetupError for a package that cannot be used,
    so that it stops only its own courier.
    """
    if channel.courier.startswith("couriers."):
        return import_module(channel.courier)
    try:
        module = import_module(channel.courier)
    except Exception as error:  # a foreign package may raise anything while it is imported
        reason = f"{type(error).__name__}: {error}"
        raise SetupError(f"the courier {channel.name} cannot be used: {channel.courier}: {reason}") from error
    if not (hasattr(module, "Settings") and hasattr(module, "open")):
        reason = f"{channel.courier} has no Settings and open"
        raise SetupError(f"the courier {channel.name} cannot be used: {reason}")
    return module


def _folders() -> list[str]:
    """Return the names of the folders of Ada's own channels."""
    names = [module.name for module in pkgutil.iter_modules(couriers.__path__) if module.ispkg]
    return [name for name in names if find_spec(f"couriers.{name}.channel")]


def _points(group: str) -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=group)}


def _own(name: str) -> Channel:
    record: Channel = import_module(f"couriers.{name}.channel").CHANNEL
    return record


def _installed(point: EntryPoint) -> Channel:
    """Return the record of an installed channel. One that cannot be read stands for its module, which then says why it
    cannot be used.
    """
    record = None
    if point.group == CHANNELS_GROUP:
        with suppress(Exception):
            record = point.load()
    return record if isinstance(record, Channel) and record.name == point.name else Channel(point.name, point.module)
