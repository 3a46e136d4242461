"""People and groups of the directory: frozen values and their rules. Pure.

`faults_of_…` return every fault of a value, so that the HTTP API and the CSV import can report all of them at once;
`core.directory` raises the first. 7 and "7" are the same id (`id_text`); an id comes back as it was given.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, TypeVar, get_args

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from core.errors import Invalid
from core.model.contacts.addresses import EMAIL_ADDRESS, ascii_email, channel_records, malformed, without_duplicates
from core.model.contacts.addresses import canonical as canonical_address
from core.model.history_key import Id
from core.model.hours import faults_of_hours
from core.model.own_fields import faults_of_field_name
from core.model.text.characters import nfc, refusal, with_plain_spaces, without_marks
from core.model.text.personal import field_name

Role = Literal["student", "trainer", "staff", "admin"]
Locale = Literal["ru", "en"]
ObjectKind = Literal["group", "supergroup"]

ROLES: tuple[str, ...] = get_args(Role)
LOCALES: tuple[str, ...] = get_args(Locale)
OBJECT_KINDS: tuple[str, ...] = get_args(ObjectKind)

MAX_ADDRESSES = 16
"""Addresses of one person in one channel."""
MAX_CHANNELS = 32
MAX_EXTERNAL_IDS = 16
MAX_GUARDIANS = 16
"""Guardians of one child, blocked ones apart."""
MAX_FIELDS = 50
"""Own fields of one person."""
_LONGEST_VALUE = 1024
_MAX_NAME = 256
_MAX_EMAIL = 254  # RFC 5321, section 4.5.3.1.3, without the brackets
_INT64 = 2**63
ACCOUNTS = "oidc"
"""The system of the external ids of accounts with which people sign in: no source of people."""
SOURCE = rf"(?!{ACCOUNTS}$)[a-z0-9][a-z0-9_]{{0,26}}"
"""The form of the name of a source of people."""
_WORD = re.compile(r"[^\W_]+")
_ADDRESS_LENGTH = 256
_SYSTEM = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
# The local part is a dot-atom of RFC 5321; the domain has two labels or more, in ASCII (xn-- for others).
EMAIL = (
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])"
)


class User(Struct, frozen=True, omit_defaults=True):
    """A person. `contacts`: channel → addresses; no channel has an empty list. `opt_out`: channels in which the person
    wants no messages. `blocked`: it gets none at all, cannot sign in, and its orders are refused. `fields`: of its own,
    for personal texts: name → value, none empty. `hours`: in which it wants messages (`core.model.hours`).
    `external_ids`: what other systems call the person, as `system:id`; one belongs to one person. `guardians`: ids of
    the people who get what concerns this child, as text; `blocked_guardians`: those who get nothing of it, whether or
    not `guardians` names them. `locale`: the language that the person, or who has added it, has stated; None if nobody
    has (`core.sentence.language_of`). `scim`: source → the person as this source has described it by SCIM, as JSON.
    """

    id: Id
    name: str | None = None
    email: str | None = None
    role: str | None = None
    locale: str | None = None
    contacts: Mapping[str, Sequence[str]] = {}
    opt_out: Sequence[str] = ()
    blocked: bool = False
    fields: Mapping[str, str] = {}
    hours: str = ""
    external_ids: Sequence[str] = ()
    guardians: Sequence[str] = ()
    blocked_guardians: Sequence[str] = ()
    scim: Mapping[str, str] = {}

    @property
    def informed_guardians(self) -> Sequence[str]:
        """The guardians that are not blocked for this child."""
        return [one for one in self.guardians if one not in self.blocked_guardians]

    def accepts(self, channel: str) -> bool:
        """Return whether it may be written to in a channel: it is not blocked and has not opted out of it."""
        return not self.blocked and channel not in self.opt_out


class UserChange(Struct, frozen=True):
    """New values of a person's fields. A field that is UNSET stays; the others are replaced as a whole."""

    name: str | UnsetType | None = UNSET
    email: str | UnsetType | None = UNSET
    role: str | UnsetType | None = UNSET
    locale: str | UnsetType | None = UNSET
    contacts: Mapping[str, Sequence[str]] | UnsetType = UNSET
    opt_out: Sequence[str] | UnsetType = UNSET
    blocked: bool | UnsetType = UNSET
    fields: Mapping[str, str] | UnsetType = UNSET
    hours: str | UnsetType = UNSET
    external_ids: Sequence[str] | UnsetType = UNSET
    guardians: Sequence[str] | UnsetType = UNSET
    blocked_guardians: Sequence[str] | UnsetType = UNSET


class Group(Struct, frozen=True, omit_defaults=True):
    """A group of people. A virtual group is used to address people and is never shown as their origin. `external_id`:
    what the client of SCIM calls it, "" if nothing.
    """

    id: Id
    title: str | None = None
    virtual: bool = False
    external_id: str = ""


class GroupChange(Struct, frozen=True):
    """New values of a group's fields. A field that is UNSET stays."""

    title: str | UnsetType | None = UNSET
    virtual: bool | UnsetType = UNSET
    external_id: str | UnsetType = UNSET


class Supergroup(Struct, frozen=True, omit_defaults=True):
    """A set of groups."""

    id: Id
    title: str | None = None
    groups: Sequence[Id] = ()


AnyGroup = TypeVar("AnyGroup", Group, Supergroup)


class Ownership(Struct, frozen=True):
    """The person `user` may write to the group or supergroup `id`."""

    user: Id
    kind: ObjectKind
    id: Id


class Member(Struct, frozen=True):
    """A person that was found through groups. `origin`: the ids of its non-virtual groups among them, as text."""

    user: User
    origin: Sequence[str]


class Expansion(Struct, frozen=True):
    """The people of groups and supergroups, each once."""

    members: Sequence[Member]


def id_text(given: Id) -> str:
    """Return the form in which ids are compared and stored: 7 and "7" are the same, and й as one character
    and as two."""
    return nfc(str(given))


# canonical forms


def canonical_user(user: User) -> User:
    """Return the form in which a person is stored: one form of each address and of the e-mail address, no
    repetition."""
    contacts, name = canonical_contacts(user.contacts), canonical_name(user.name)
    email = canonical_email(user.email) if user.email else None
    return User(
        canonical_id(user.id),
        name,
        email,
        user.role,
        user.locale,
        contacts,
        tuple(dict.fromkeys(user.opt_out)),
        user.blocked,
        canonical_fields(user.fields),
        user.hours,
        tuple(dict.fromkeys(nfc(one) for one in user.external_ids)),
        tuple(dict.fromkeys(map(id_text, user.guardians))),
        tuple(dict.fromkeys(map(id_text, user.blocked_guardians))),
        user.scim,
    )


def canonical_fields(fields: Mapping[str, str]) -> Mapping[str, str]:
    """Return own fields by their names in one form, without outer spaces and without empty values."""
    return {field_name(name): value.strip() for name, value in fields.items() if value.strip()}


def canonical_group(group: AnyGroup) -> AnyGroup:
    """Return the form in which a group or supergroup is stored."""
    return replace(group, id=canonical_id(group.id), title=canonical_name(group.title))


def canonical_id(given: Id) -> Id:
    """Return the form in which an id comes back: as it was given, a text in NFC."""
    return nfc(given) if isinstance(given, str) else given


def canonical_contacts(contacts: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return each address once and in its canonical form; no empty lists."""
    found = {channel: without_duplicates(channel, addresses) for channel, addresses in contacts.items()}
    return {channel: [canonical_address(channel, one) for one in some] for channel, some in found.items() if some}


def canonical_name(name: str | None) -> str | None:
    """Return a name with plain spaces: a non-breaking one, as spreadsheets have it, looks the same."""
    return with_plain_spaces(nfc(name)) if name else name


def canonical_email(email: str) -> str:
    """Return the one form of an e-mail address: in lower case, its domain with the letters of its language."""
    return EMAIL_ADDRESS.canonical(nfc(email))


_MOST_WORDS = 8
_MOST_LETTERS = 32


def name_words(name: str | None) -> Sequence[str]:
    """Return the words by which a name is found: without case, ё is е, each once; the first 8, of 32 letters."""
    plain = unicodedata.normalize("NFKC", name or "").casefold().replace("ё", "е")
    return tuple(dict.fromkeys(word[:_MOST_LETTERS] for word in _WORD.findall(plain)[:_MOST_WORDS]))


# faults


def faults_of_user(user: User, channels: Collection[str] | None = None) -> Iterator[Invalid]:
    """Emit every fault of a person. `channels`: the known ones; None if they are not checked here."""
    yield from faults_of_id(user.id)
    yield from faults_of_name(user.name, "name")
    if user.email is not None:
        yield from faults_of_email(user.email)
    if user.role is not None and user.role not in ROLES:
        yield Invalid("UNKNOWN_ROLE", f"A role is one of {', '.join(ROLES)}.", "role")
    if user.locale is not None and user.locale not in LOCALES:
        yield Invalid("UNKNOWN_LOCALE", f"A locale is one of {', '.join(LOCALES)}.", "locale")
    yield from faults_of_contacts(user.contacts, channels)
    yield from _faults_of_fields(user.fields)
    yield from faults_of_hours(user.hours)
    yield from _faults_of_external_ids(user.external_ids)
    yield from _faults_of_guardians(user, "guardians", user.guardians)
    yield from _faults_of_guardians(user, "blocked_guardians", user.blocked_guardians)
    for number, channel in enumerate(user.opt_out):
        yield from _faults_of_channel(channel, f"opt_out.{number}", channels)


def _faults_of_external_ids(external_ids: Sequence[str]) -> Iterator[Invalid]:
    """Yield the faults of external ids: at most 16, such as 1c:00042."""
    if len(external_ids) > MAX_EXTERNAL_IDS:
        yield Invalid("TOO_LONG", f"At most {MAX_EXTERNAL_IDS} external ids are allowed.", "external_ids")
    for number, one in enumerate(external_ids):
        path = f"external_ids.{number}"
        if not is_external_id(one):
            yield Invalid("EXTERNAL_ID_MALFORMED", "An external id looks like 1c:00042.", path)
        elif refused := refusal(one):
            yield Invalid("NOT_PRINTABLE", refused, path)


def _faults_of_guardians(user: User, path: str, guardians: Sequence[str]) -> Iterator[Invalid]:
    if len(guardians) > MAX_GUARDIANS:
        yield Invalid("TOO_LONG", f"At most {MAX_GUARDIANS} guardians are allowed.", path)
    for number, one in enumerate(guardians):
        yield from faults_of_id(one, f"{path}.{number}")
        if id_text(one) == id_text(user.id):
            yield Invalid("GUARDIAN_SELF", "A person is no guardian of itself.", f"{path}.{number}")


def is_source(text: str) -> bool:
    """Return whether a text can name a source of people: small letters, digits and _, at most 27."""
    return re.fullmatch(SOURCE, text) is not None


def is_external_id(text: str) -> bool:
    """Return whether a text has the form of an external id: `system:id`."""
    system, _, own = text.partition(":")
    return bool(_SYSTEM.fullmatch(system) and own) and len(text) <= _ADDRESS_LENGTH


def _faults_of_fields(fields: Mapping[str, str]) -> Iterator[Invalid]:
    """Yield the faults of own fields: at most 50, with names that a text can have between braces."""
    if len(fields) > MAX_FIELDS:
        yield Invalid("TOO_LONG", f"At most {MAX_FIELDS} fields are allowed.", "fields")
    for name, value in fields.items():
        yield from faults_of_field_name(name, f"fields.{name}")
        if len(value) > _LONGEST_VALUE:
            yield Invalid("TOO_LONG", f"The maximum length is {_LONGEST_VALUE}.", f"fields.{name}")


def faults_of_id(given: Id, path: str = "id") -> Iterator[Invalid]:
    """Yield the faults of an id: it is a whole number of 64 bits, or 1 to 128 printable characters."""
    if isinstance(given, int):
        if not -_INT64 <= given < _INT64:
            yield Invalid("OUT_OF_RANGE", "A number has at most 64 bits.", path)
    elif not given or len(given) > 128:
        yield Invalid("TOO_LONG" if given else "TOO_SHORT", "An id has 1 to 128 characters.", path)
    elif refused := refusal(given):
        yield Invalid("NOT_PRINTABLE", refused, path)


def faults_of_name(name: str | None, path: str) -> Iterator[Invalid]:
    """Yield the faults of a name or title: it is at most 256 printable characters, spaces of any kind, and joiners of
    emoji.
    """
    if name is not None and len(name) > _MAX_NAME:
        yield Invalid("TOO_LONG", f"The maximum length is {_MAX_NAME}.", path)
    elif name is not None and (refused := refusal(with_plain_spaces(name), joiners=True)):
        yield Invalid("NOT_PRINTABLE", refused, path)


def faults_of_email(email: str) -> Iterator[Invalid]:
    """Yield the fault of an e-mail address: its form is name@domain, the name in ASCII, without blanks."""
    email = email if email.isascii() else ascii_email(email) or email
    if len(email) > _MAX_EMAIL or len(email.partition("@")[0]) > 64 or not re.fullmatch(EMAIL, email):
        yield Invalid("EMAIL_MALFORMED", "An e-mail address looks like name@example.org.", "email")


def faults_of_contacts(contacts: Mapping[str, Sequence[str]], channels: Collection[str] | None) -> Iterator[Invalid]:
    """Yield the faults of contacts: they are addresses of known channels, at most 16 in each."""
    if len(contacts) > MAX_CHANNELS:
        yield Invalid("TOO_LONG", f"At most {MAX_CHANNELS} channels are allowed.", "contacts")
    for channel, addresses in contacts.items():
        path = f"contacts.{channel}"
        yield from _faults_of_channel(channel, path, channels)
        if len(addresses) > MAX_ADDRESSES:
            yield too_many_addresses(path)
        for number, address in enumerate(addresses):
            if fault := fault_of_address(channel, address, f"{path}.{number}"):
                yield fault


def too_many_addresses(path: str) -> Invalid:
    return Invalid("TOO_LONG", f"At most {MAX_ADDRESSES} addresses of a channel are allowed.", path)


def fault_of_address(channel: str, address: str, path: str = "address") -> Invalid | None:
    """Return the fault of an address; None if it has 1 to 256 printable characters, in the form of its channel."""
    if not address or len(address) > _ADDRESS_LENGTH:
        return Invalid("TOO_LONG" if address else "TOO_SHORT", "An address has 1 to 256 characters.", path)
    if refused := refusal(without_marks(address)):
        return Invalid("NOT_PRINTABLE", refused, path)
    wrong = malformed(channel, address)
    return Invalid("ADDRESS_MALFORMED", wrong, path) if wrong else None


def _faults_of_channel(channel: str, path: str, channels: Collection[str] | None) -> Iterator[Invalid]:
    if channels is None:
        known = channel.isprintable() and ":" not in channel and 0 < len(channel) <= 64
    else:
        known = channel in channels
    if not known:
        yield unknown_channel(channel, path, channels or ())


def unknown_channel(channel: str, path: str, known: Collection[str]) -> Invalid:
    """Return the refusal of a channel, which names the `known` ones."""
    others = f" There are {', '.join(sorted(known))}." if known else ""
    fault = f"The channel {channel!r} is unknown."
    if channel in channel_records():  # a wrong token, for example, has kept it from its first start
        fault = f"No courier of the channel {channel!r} has started here yet: ./ada doctor says why."
    return Invalid("UNKNOWN_CHANNEL", f"{fault}{others}", path, channel)


def faults_of_group(group: Group | Supergroup) -> Iterator[Invalid]:
    """Emit every fault of a group or supergroup."""
    yield from faults_of_id(group.id)
    yield from faults_of_name(group.title, "title")
