"""The invariants of the directory (I19 to I21) and of sign-ins (I25), as implications between entries of its keys.
Pure.

I19: a person's record and the indexes by id, e-mail address, contact, role and name name each other.
I20: members and memberships, groups and supergroups, owners and what they own name each other, and exist.
I21: the owner of a supergroup owns each of its groups.
I25: this installation has the keys that decrypt the tokens of users. They are not in Redis, so `./ada audit` checks it
with those that its process has.

An implication is checked on one atomic read. If a premise is no longer true, nothing follows. Members of a deleted
group are no violation: `lua/directory/functions/delete_collection.lua` takes them out in pages.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from core.audit.invariants.invariant import Violation
from core.model.people import User, name_words
from core.redis.keys import KEYS

_WHY = "which of the two is right is unknown"

Entries = Sequence[tuple[str, str]]
"""Fields and values of a hash, or members and scores."""
_KINDS_OF_MEMBERS = {"group": "user", "supergroup": "group"}
_RULE = "I25"


@dataclass(frozen=True, slots=True)
class AuditRead:
    """One value: of a field of a hash (HGET), the score of a member (ZSCORE), a fact of a task (TASK), or the ms
    that a key still has (PTTL), as text.
    """

    command: str
    key: str
    field: str

    @property
    def words(self) -> tuple[str, str, str]:
        return self.command, self.key, self.field


@dataclass(frozen=True, slots=True)
class Premise:
    """A value that a finding rests on. `value` None: any."""

    read: AuditRead
    value: str | None = None

    def holds(self, found: str | None) -> bool:
        return found is not None and self.value in (None, found)


@dataclass(frozen=True, slots=True)
class Implication:
    """While all premises are true, `holds` is true of what `conclusion` reads."""

    rule: str
    premises: Sequence[Premise]
    conclusion: AuditRead
    holds: Callable[[str | None], bool]
    wanted: str
    why: str = _WHY

    @property
    def reads(self) -> list[AuditRead]:
        return [*(premise.read for premise in self.premises), self.conclusion]

    def violation(self, values: Sequence[str | None]) -> Violation | None:
        """Return the violation that the values of `reads` show."""
        *seen, concluded = values
        if not all(premise.holds(one) for premise, one in zip(self.premises, seen, strict=True)):
            return None
        if self.holds(concluded):
            return None
        found = f"{self.conclusion.field} is {'absent' if concluded is None else 'another'}"
        return Violation(self.rule, self.conclusion.key, found, self.wanted, why=self.why)


def implications(kind: str, shard: int, parts: Sequence[str], entries: Entries) -> Iterator[Implication]:
    """Emit what entries of a key of this kind imply. `parts`: those of its name; the first is the tenant."""
    tenant, *of = parts
    place = _DirectoryKey(shard, tenant, KEYS[kind].at(shard, *parts))
    make = _BY_KIND[kind]
    for field, value in entries:
        yield from make(place, of, field, value)


def rule_of_ownership(
    shard: int, tenant: str, user: str, supergroup: str, groups: Iterable[str]
) -> Iterator[Implication]:
    """Yield the implications of I21. `groups`: those seen in the supergroup."""
    place = _DirectoryKey(shard, tenant, KEYS["owned"].at(shard, tenant, user))
    owned = Premise(AuditRead("ZSCORE", place.key, f"supergroup:{supergroup}"))
    for group in groups:
        part = Premise(AuditRead("ZSCORE", place.of("members", "supergroup", supergroup), group))
        wanted = f"owned, as {supergroup} contains it"
        yield Implication("I21", (owned, part), AuditRead("ZSCORE", place.key, f"group:{group}"), _is_there, wanted)


@dataclass(frozen=True, slots=True)
class _DirectoryKey:
    """A key of the directory of one tenant."""

    shard: int
    tenant: str
    key: str

    def of(self, kind: str, *parts: str) -> str:
        """Return another key of the same tenant."""
        return KEYS[kind].at(self.shard, self.tenant, *parts)

    def seen(self, field: str, value: str | None = None) -> Premise:
        return Premise(AuditRead("ZSCORE" if value is None else "HGET", self.key, field), value)

    def member(self, rule: str, seen: Premise, member: str, kind: str, *of: str) -> Implication:
        """Return that the sorted set `kind` of something has a member."""
        key = self.of(kind, *of)
        return Implication(rule, (seen,), AuditRead("ZSCORE", key, member), _is_there, f"there, as {self.key} has it")

    def exists(self, seen: Premise, kind: str, object_id: str) -> Implication:
        """Return that there is a record of a user, group or supergroup (the kind)."""
        wanted = f"a record, as {self.key} names it"
        key = self.of("users") if kind == "user" else self.of("collections", kind)
        return Implication("I20", (seen,), AuditRead("HGET", key, object_id), _is_there, wanted)


def _is_there(value: str | None) -> bool:
    return value is not None


def _is(wanted: str) -> Callable[[str | None], bool]:
    return lambda value: value == wanted


# people


def _of_user(place: _DirectoryKey, _: Sequence[str], user_id: str, record: str) -> Iterator[Implication]:
    seen, user = place.seen(user_id, record), _user(record)
    if user is None:
        conclusion = AuditRead("HGET", place.key, user_id)
        yield Implication("I19", (seen,), conclusion, lambda value: _user(value) is not None, "the record of a person")
        return
    yield place.member("I19", seen, user_id, "userids")
    if user.role is not None:
        yield place.member("I19", seen, user_id, "role", user.role)
    for word in name_words(user.name):
        yield place.member("I19", seen, f"{word} {user_id}", "names")
    for guardian in {*user.guardians, *user.blocked_guardians}:
        yield place.member("I19", seen, user_id, "children", guardian)
    for kind, entry in _unique_of(user):
        conclusion = AuditRead("HGET", place.of(kind), entry)
        yield Implication("I19", (seen,), conclusion, _is(user_id), f"the id of {user_id}, who has it")


def _unique_of(user: User) -> Iterator[tuple[str, str]]:
    """Yield index and entry of all that belongs to one person only."""
    if user.email is not None:
        yield "emails", user.email
    for channel, addresses in user.contacts.items():
        for address in addresses:
            yield "contacts", f"{channel}:{address}"
    for external_id in user.external_ids:
        yield "external_ids", external_id


def _user(record: str | None) -> User | None:
    """Return the person of a record; None if it is not the record of a person."""
    try:
        return msgspec.json.decode(record or "", type=User)
    except msgspec.MsgspecError:
        return None


def _of_unique(kind: str) -> "Make":
    def make(place: _DirectoryKey, _: Sequence[str], entry: str, user_id: str) -> Iterator[Implication]:
        def has_it(record: str | None) -> bool:
            user = _user(record)
            return user is not None and (kind, entry) in _unique_of(user)

        conclusion = AuditRead("HGET", place.of("users"), user_id)
        yield Implication("I19", (place.seen(entry, user_id),), conclusion, has_it, f"a person with {entry}")

    return make


def _of_user_id(place: _DirectoryKey, _: Sequence[str], user_id: str, __: str) -> Iterator[Implication]:
    conclusion = AuditRead("HGET", place.of("users"), user_id)
    yield Implication("I19", (place.seen(user_id),), conclusion, _is_there, f"a person, as {place.key} has it")


def _of_role(place: _DirectoryKey, of: Sequence[str], user_id: str, _: str) -> Iterator[Implication]:
    (role,) = of

    def has_it(record: str | None) -> bool:
        user = _user(record)
        return user is not None and user.role == role

    conclusion = AuditRead("HGET", place.of("users"), user_id)
    yield Implication("I19", (place.seen(user_id),), conclusion, has_it, f"a person with the role {role}")


def _of_child(place: _DirectoryKey, of: Sequence[str], child: str, _: str) -> Iterator[Implication]:
    (guardian,) = of

    def names_it(record: str | None) -> bool:
        user = _user(record)
        return user is not None and guardian in (*user.guardians, *user.blocked_guardians)

    conclusion = AuditRead("HGET", place.of("users"), child)
    yield Implication("I19", (place.seen(child),), conclusion, names_it, f"a child of {guardian}")
    yield place.exists(place.seen(child), "user", guardian)


def _of_name(place: _DirectoryKey, of: Sequence[str], entry: str, _: str) -> Iterator[Implication]:
    word, _, user_id = entry.partition(" ")

    def has_it(record: str | None) -> bool:
        user = _user(record)
        return user is not None and word in name_words(user.name)

    conclusion = AuditRead("HGET", place.of("users"), user_id)
    yield Implication("I19", (place.seen(entry),), conclusion, has_it, f"a person whose name has the word {word}")


# groups, supergroups, owners


def _of_collection(place: _DirectoryKey, of: Sequence[str], given: str, record: str) -> Iterator[Implication]:
    yield place.member("I20", place.seen(given, record), given, "collectionids", *of)


def _of_collection_id(place: _DirectoryKey, of: Sequence[str], given: str, _: str) -> Iterator[Implication]:
    yield place.exists(place.seen(given), of[0], given)


def _of_member(place: _DirectoryKey, of: Sequence[str], member: str, _: str) -> Iterator[Implication]:
    kind, given = of
    seen = place.seen(member)
    yield place.member("I20", seen, given, "member_of", kind, member)
    yield from _of_both_ends(place, seen, kind, given, member)


def _of_member_of(place: _DirectoryKey, of: Sequence[str], given: str, _: str) -> Iterator[Implication]:
    kind, member = of
    seen = place.seen(given)
    yield place.member("I20", seen, member, "members", kind, given)
    yield from _of_both_ends(place, seen, kind, given, member)


def _of_both_ends(place: _DirectoryKey, seen: Premise, kind: str, given: str, member: str) -> Iterator[Implication]:
    """Emit that a member and its collection exist, except a group: a deleted one has members for a while."""
    yield place.exists(seen, _KINDS_OF_MEMBERS.get(kind, "user"), member)
    if kind != "group":
        yield place.exists(seen, kind, given)


def _of_owned(place: _DirectoryKey, of: Sequence[str], owned: str, _: str) -> Iterator[Implication]:
    (user,) = of
    seen = place.seen(owned)
    kind, _, object_id = owned.partition(":")
    yield place.member("I20", seen, user, "owners", owned)
    yield place.exists(seen, "user", user)
    yield place.exists(seen, kind, object_id)


def _of_owner(place: _DirectoryKey, of: Sequence[str], user: str, _: str) -> Iterator[Implication]:
    (owned,) = of
    seen = place.seen(user)
    yield place.member("I20", seen, owned, "owned", user)
    yield place.exists(seen, "user", user)


Make = Callable[[_DirectoryKey, Sequence[str], str, str], Iterator[Implication]]

_BY_KIND: dict[str, Make] = {
    "users": _of_user,
    "userids": _of_user_id,
    "emails": _of_unique("emails"),
    "contacts": _of_unique("contacts"),
    "external_ids": _of_unique("external_ids"),
    "children": _of_child,
    "role": _of_role,
    "names": _of_name,
    "collections": _of_collection,
    "collectionids": _of_collection_id,
    "members": _of_member,
    "member_of": _of_member_of,
    "owned": _of_owned,
    "owners": _of_owner,
}

DIRECTORY_KINDS = tuple(_BY_KIND)
"""The kinds of keys that the directory has."""


def lost_keys(key: str, lost: Iterable[str]) -> list[Violation]:
    """Return the violations of lost keys. `key`: where the fingerprints of keys are. `lost`: those of the keys that are
    not here.
    """
    why = "give the lost key back, or `./ada sign-in reset --yes`"
    return [
        Violation(_RULE, key, f"a key {one}, which is not here", "the keys of this installation", why=why)
        for one in lost
    ]


def damaged_tokens(key: str, service: str) -> Violation:
    """Return the violation of damaged tokens. `key`: of the tokens of a user."""
    why = "the user signs in again"
    return Violation(_RULE, key, f"{service}: tokens that cannot be decrypted", "tokens", why=why)
