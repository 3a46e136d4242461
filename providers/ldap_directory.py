"""Reads the people and groups of a directory server (LDAP, Active Directory) as a mapping file says, in pages.

The library ldap3 is imported here alone. A password goes over TLS only, or to this machine; a referral is not followed,
because it would get the password. A page that does not end with success is a fault, and so is a reference to another
server, whose people would be missing: half an answer is none.
"""

import re
import ssl
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import ldap3
import msgspec
from ldap3.core.exceptions import (
    LDAPException,
    LDAPInvalidCredentialsResult,
    LDAPInvalidFilterError,
    LDAPNoSuchObjectResult,
    LDAPOperationResult,
)
from ldap3.utils.dn import safe_dn
from msgspec import Struct

_LOCAL = ("127.0.0.1", "::1", "localhost")
_CONNECT_SECONDS = 10
_SILENT_SECONDS = 60
_PAGE = 500
_SUCCESS = 0
_PAGED = "1.2.840.113556.1.4.319"
_RANGE = re.compile(r"(?i)(.+);range=\d+-(\d+|\*)")
_ROLES = frozenset({"student", "trainer", "staff"})
"""A directory server makes nobody an administrator of Ada."""
_GUIDS = ("objectguid", "msexchmailboxguid")


class LdapFault(Exception):
    """The server, or the mapping, does not give what is wanted. The text has no secret."""


class LdapGroups(Struct, frozen=True, forbid_unknown_fields=True):
    """The groups: `id` and `title` are attributes; `member` and `owner` have the names (DN) of people, or their value
    of `of`.
    """

    base: str
    filter: str
    id: str = "cn"
    title: str = "description"
    member: str = "member"
    owner: str = ""
    of: str = ""


class LdapMapping(Struct, frozen=True, forbid_unknown_fields=True):
    """A mapping file. `user`: the name with which Ada signs in. `id`: the attribute that never changes. `columns`:
    column of the import → attribute. `roles`: value of the attribute of the column role → role of Ada.
    `ignore_references`: a part of `base` that another server has is left out.
    """

    base: str
    filter: str
    user: str
    id: str
    columns: Mapping[str, str]
    roles: Mapping[str, str] = {}
    groups: LdapGroups | None = None
    ignore_references: bool = False


class LdapPerson(Struct, frozen=True):
    """A person: column → values. `groups`, `owns`: ids of groups."""

    id: str
    columns: Mapping[str, Sequence[str]]
    groups: Sequence[str]
    owns: Sequence[str]


class LdapPeople(Struct, frozen=True):
    """`titles`: group → title."""

    people: Sequence[LdapPerson]
    titles: Mapping[str, str]


class LdapEntry(Struct, frozen=True):
    """An entry. `name`: its DN; `values`: attribute in small letters → values."""

    name: str
    values: Mapping[str, Sequence[str]]

    def all(self, attribute: str) -> Sequence[str]:
        return self.values.get(attribute.lower(), ())

    def first(self, attribute: str) -> str:
        return next(iter(self.all(attribute)), "")


def decode_mapping(content: str) -> LdapMapping:
    """Return a mapping file (YAML). Raises LdapFault."""
    try:
        mapping = msgspec.yaml.decode(content, type=LdapMapping)
    except msgspec.MsgspecError as fault:
        raise LdapFault(f"the mapping is wrong: {fault}") from None
    if wrong := set(mapping.roles.values()) - _ROLES:
        raise LdapFault(f"the mapping gives a role that is none of {', '.join(sorted(_ROLES))}: {min(wrong)}")
    return mapping


def read_people(url: str, password: str, mapping: LdapMapping) -> LdapPeople:
    """Return the people and groups of a server, `ldaps://host` or `ldap://host` (with StartTLS). Raises LdapFault."""
    try:
        with _connected(url, password, mapping.user) as connection:
            return _read(connection, mapping)
    except (LDAPException, OSError, ssl.SSLError) as fault:
        raise LdapFault(_sentence(fault)) from None


def _sentence(fault: Exception) -> str:
    """Return what is wrong, in words if it is something that the mapping or its password can cause."""
    if isinstance(fault, LDAPInvalidCredentialsResult):
        return "the server does not know the user of the mapping, or refuses its password"
    if isinstance(fault, LDAPNoSuchObjectResult):
        return "the server has nothing of the name that the mapping has as base"
    if isinstance(fault, LDAPInvalidFilterError):
        return "a filter of the mapping is malformed"
    if isinstance(fault, LDAPOperationResult):
        return f"the server refuses: {fault.description}"
    return f"{type(fault).__name__}: {str(fault)[:300]}"


def _connected(url: str, password: str, user: str) -> ldap3.Connection:
    """Return a connection that is signed in. Raises LdapFault, LDAPException."""
    parts = urlsplit(url)
    if not parts.hostname or parts.path not in ("", "/") or parts.query or "@" in parts.netloc:
        raise LdapFault("the address is ldaps://host or ldap://host, with a port if it is not the usual one")
    is_tls = parts.scheme == "ldaps"
    tls = ldap3.Tls(validate=ssl.CERT_REQUIRED)
    server = ldap3.Server(
        parts.hostname, parts.port, use_ssl=is_tls, tls=tls, get_info=ldap3.NONE, connect_timeout=_CONNECT_SECONDS
    )
    starts_tls = not is_tls and parts.hostname not in _LOCAL
    return ldap3.Connection(
        server,
        user,
        password,
        auto_bind=ldap3.AUTO_BIND_TLS_BEFORE_BIND if starts_tls else ldap3.AUTO_BIND_NO_TLS,
        auto_referrals=False,
        read_only=True,
        raise_exceptions=True,
        receive_timeout=_SILENT_SECONDS,
    )


def _read(connection: ldap3.Connection, mapping: LdapMapping) -> LdapPeople:
    groups, owns, titles = _relations(connection, mapping, mapping.groups) if mapping.groups else ({}, {}, {})
    of = mapping.groups.of if mapping.groups else ""
    attributes = {mapping.id, *mapping.columns.values(), *([of] if of else [])}
    people = [
        LdapPerson(
            entry.first(mapping.id),
            {column: _mapped(mapping, column, entry.all(name)) for column, name in mapping.columns.items()},
            sorted(groups.get(known := _plain_name(entry.first(of) if of else entry.name), ())),
            sorted(owns.get(known, ())),
        )
        for entry in _entries(connection, mapping, mapping.base, mapping.filter, attributes)
    ]
    return LdapPeople(people, titles)


def _mapped(mapping: LdapMapping, column: str, values: Sequence[str]) -> Sequence[str]:
    """Return the values of a column; of the role the first one that is mapped."""
    return [mapping.roles[one] for one in values if one in mapping.roles][:1] if column == "role" else values


_Relations = tuple[Mapping[str, set[str]], Mapping[str, set[str]], Mapping[str, str]]


def _relations(connection: ldap3.Connection, mapping: LdapMapping, groups: LdapGroups) -> _Relations:
    """Return person → groups, person → groups that it owns, group → title."""
    members, owners = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    titles: dict[str, str] = {}
    attributes = {one for one in (groups.id, groups.title, groups.member, groups.owner) if one}
    for entry in _entries(connection, mapping, groups.base, groups.filter, attributes):
        group = entry.first(groups.id)
        if not group:
            raise LdapFault(f"the group {entry.name} has no {groups.id}")
        titles[group] = entry.first(groups.title) or group
        for one in entry.all(groups.member):
            members[_plain_name(one)].add(group)
        for one in entry.all(groups.owner) if groups.owner else ():
            owners[_plain_name(one)].add(group)
    return members, owners, titles


def _plain_name(name: str) -> str:
    """Return a name (DN) in the form in which names are compared; a value that is none is compared without case."""
    try:
        return str(safe_dn(name)).lower()
    except LDAPException:
        return name.lower()


def _entries(
    connection: ldap3.Connection, mapping: LdapMapping, base: str, wanted: str, attributes: set[str]
) -> Iterator[LdapEntry]:
    """Emit all entries, read in pages. Raises LdapFault if a page ends otherwise than with success, or another server
    has a part of them.
    """
    cookie: bytes | None = None
    while cookie != b"":
        connection.search(
            base, wanted, ldap3.SUBTREE, attributes=sorted(attributes), paged_size=_PAGE, paged_cookie=cookie
        )
        _check(connection)
        for one in connection.response or ():
            if one["type"] == "searchResEntry":
                yield LdapEntry(one["dn"], whole_values(connection, one))
            elif one["type"] == "searchResRef" and not mapping.ignore_references:
                raise LdapFault(
                    f"a part of {base} is at another server, {str(one['uri'][0])[:200]}: name a base without it, or "
                    "write ignore_references: true"
                )
        control = connection.result.get("controls", {}).get(_PAGED)
        cookie = control["value"]["cookie"] if control else b""


def _check(connection: ldap3.Connection) -> None:
    if connection.result["result"] != _SUCCESS:
        raise LdapFault(f"the search ended with {connection.result['description']}")


def whole_values(connection: ldap3.Connection, entry: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    """Return the values of an entry. Active Directory gives those of a large group in parts, which are read on."""
    values: dict[str, list[str]] = {}
    for name, raw in entry["raw_attributes"].items():
        part = _RANGE.fullmatch(name)
        attribute = part[1] if part else name
        found = values.setdefault(attribute.lower(), [])
        found += (_text(attribute, one) for one in raw)
        if part and part[2] != "*":
            found += _rest(connection, entry["dn"], attribute, int(part[2]) + 1)
    return values


def _rest(connection: ldap3.Connection, name: str, attribute: str, begin: int) -> Iterator[str]:
    """Emit the values of an attribute from a place on. Raises LdapFault."""
    following: int | None = begin
    while following is not None:
        wanted = [f"{attribute};range={following}-*"]
        connection.search(name, "(objectClass=*)", ldap3.BASE, attributes=wanted)
        _check(connection)
        parts = [
            (part, raw)
            for one in connection.response
            for title, raw in one.get("raw_attributes", {}).items()
            if (part := _RANGE.fullmatch(title))
        ]
        if len(parts) != 1:
            raise LdapFault(f"the server does not give the values of {attribute} of {name} from {following} on")
        part, raw = parts[0]
        yield from (_text(attribute, one) for one in raw)
        following = None if part[2] == "*" else int(part[2]) + 1


def _text(attribute: str, value: bytes) -> str:
    """Return a value as text; Active Directory's objectGUID as it is usually written."""
    if attribute.lower() in _GUIDS and len(value) == 16:
        return str(UUID(bytes_le=value))
    return value.decode("utf-8", "replace").strip()
