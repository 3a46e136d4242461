"""The invariants of the directory (I19 to I21), as implications between entries of its keys. Pure.

I19: a person's record and the indexes by id, e-mail address, contact and role name each other.
I20: members and memberships, groups and supergroups, owners and what they own name each other, and exist.
I21: the owner of a supergroup owns each of its groups.

An implication is checked on one atomic read. If a premise is no longer true, it says nothing. Members of a deleted
group are no violation: `lua/directory/functions/delete_group.lua` takes them out in pages.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from core.audit.invariants.invariant import Violation
from core.model.people import User
from core.redis.keys import KEYS

_WHY = "which of the two is right is unknown"


@dataclass(frozen=True, slots=True)
class Read:
    """One value: of a field of a hash (HGET), the score of a member (ZSCORE), or a fact of a task (TASK)."""

    command: str
    key: str
    field: str

    @property
    def words(self) -> tuple[str, str, str]:
        return self.command, self.key, self.field


@dataclass(frozen=True, slots=True)
class Premise:
    """What was seen. `value` None: any."""

    read: Read
    value: str | None = None

    def holds(self, found: str | None) -> bool:
        return found is not None and self.value in (None, found)


@dataclass(frozen=True, slots=True)
class Implication:
    """While all premises are true, `holds` is true of what `conclusion` reads."""

    rule: str
    premises: Sequence[Premise]
    conclusion: Read
    holds: Callable[[str | None], bool]
    wanted: str
    why: str = _WHY

    @property
    def reads(self) -> list[Read]:
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


Entries = Sequence[tuple[str, str]]
"""Fields and values of a hash, or members and scores."""


def implications(kind: str, shard: int, parts: Sequence[str], entries: Entries) -> Iterator[Implication]:
    """Emit what entries of a key of this kind imply. `parts`: those of its name; the first is the tenant."""
    place = _Place(shard, parts[0], KEYS[kind].at(shard, *parts))
    make = _BY_KIND[kind]
    for field, value in entries:
        yield from make(place, parts[1] if len(parts) > 1 else "", field, value)


def rule_of_ownership(
    shard: int, tenant: str, user: str, supergroup: str, groups: Iterable[str]
) -> Iterator[Implication]:
    """I21. `groups`: those seen in the supergroup."""
    place = _Place(shard, tenant, KEYS["owned"].at(shard, tenant, user))
    owned = Premise(Read("ZSCORE", place.key, f"supergroup:{supergroup}"))
    for group in groups:
        part = Premise(Read("ZSCORE", place.of("parts", supergroup), group))
        wanted = f"owned, as {supergroup} contains it"
        yield Implication("I21", (owned, part), Read("ZSCORE", place.key, f"group:{group}"), _is_there, wanted)


@dataclass(frozen=True, slots=True)
class _Place:
    """A key of the directory of one tenant."""

    shard: int
    tenant: str
    key: str

    def of(self, kind: str, *parts: str) -> str:
        """Another key of the same tenant."""
        return KEYS[kind].at(self.shard, self.tenant, *parts)

    def seen(self, field: str, value: str | None = None) -> Premise:
        """Return an entry of this key."""
        return Premise(Read("ZSCORE" if value is None else "HGET", self.key, field), value)

    def member(self, rule: str, seen: Premise, kind: str, part: str, member: str) -> Implication:
        """The sorted set `kind` has a member."""
        key = self.of(kind, part) if part else self.of(kind)
        return Implication(rule, (seen,), Read("ZSCORE", key, member), _is_there, f"there, as {self.key} has it")

    def exists(self, seen: Premise, kind: str, object_id: str) -> Implication:
        """There is a record."""
        wanted = f"a record, as {self.key} names it"
        return Implication("I20", (seen,), Read("HGET", self.of(kind), object_id), _is_there, wanted)


def _is_there(value: str | None) -> bool:
    return value is not None


def _is(wanted: str) -> Callable[[str | None], bool]:
    return lambda value: value == wanted


# people


def _of_user(place: _Place, _: str, user_id: str, record: str) -> Iterator[Implication]:
    seen, user = place.seen(user_id, record), _user(record)
    if user is None:
        conclusion = Read("HGET", place.key, user_id)
        yield Implication("I19", (seen,), conclusion, lambda value: _user(value) is not None, "the record of a person")
        return
    yield place.member("I19", seen, "userids", "", user_id)
    if user.role is not None:
        yield place.member("I19", seen, "role", user.role, user_id)
    for kind, entry in _unique_of(user):
        conclusion = Read("HGET", place.of(kind), entry)
        yield Implication("I19", (seen,), conclusion, _is(user_id), f"the id of {user_id}, who has it")


def _unique_of(user: User) -> Iterator[tuple[str, str]]:
    """Index and entry of all that belongs to one person only."""
    if user.email is not None:
        yield "emails", user.email
    for channel, addresses in user.contacts.items():
        for address in addresses:
            yield "contacts", f"{channel}:{address}"


def _user(record: str | None) -> User | None:
    """None if it is not the record of a person."""
    try:
        return msgspec.json.decode(record or "", type=User)
    except msgspec.MsgspecError:
        return None


def _of_unique(kind: str) -> "Make":
    def make(place: _Place, _: str, entry: str, user_id: str) -> Iterator[Implication]:
        def has_it(record: str | None) -> bool:
            user = _user(record)
            return user is not None and (kind, entry) in _unique_of(user)

        conclusion = Read("HGET", place.of("users"), user_id)
        yield Implication("I19", (place.seen(entry, user_id),), conclusion, has_it, f"a person with {entry}")

    return make


def _of_user_id(place: _Place, _: str, user_id: str, __: str) -> Iterator[Implication]:
    conclusion = Read("HGET", place.of("users"), user_id)
    yield Implication("I19", (place.seen(user_id),), conclusion, _is_there, f"a person, as {place.key} has it")


def _of_role(place: _Place, role: str, user_id: str, _: str) -> Iterator[Implication]:
    def has_it(record: str | None) -> bool:
        user = _user(record)
        return user is not None and user.role == role

    conclusion = Read("HGET", place.of("users"), user_id)
    yield Implication("I19", (place.seen(user_id),), conclusion, has_it, f"a person with the role {role}")


# groups, supergroups, owners


def _of_object(ids: str) -> "Make":
    def make(place: _Place, _: str, object_id: str, record: str) -> Iterator[Implication]:
        yield place.member("I20", place.seen(object_id, record), ids, "", object_id)

    return make


def _of_id(kind: str) -> "Make":
    def make(place: _Place, _: str, object_id: str, __: str) -> Iterator[Implication]:
        yield place.exists(place.seen(object_id), kind, object_id)

    return make


def _of_pair(mirror: str, *existing: tuple[str, bool]) -> "Make":
    """Return an entry of a relation. `mirror`: the key that has it the other way round. `existing`: hash of records,
    and whether the member (not the owner of the key) must be in it.
    """

    def make(place: _Place, owner: str, member: str, _: str) -> Iterator[Implication]:
        seen = place.seen(member)
        yield place.member("I20", seen, mirror, member, owner)
        for kind, is_member in existing:
            yield place.exists(seen, kind, member if is_member else owner)

    return make


def _of_owned(place: _Place, user: str, owned: str, _: str) -> Iterator[Implication]:
    seen = place.seen(owned)
    kind, _, object_id = owned.partition(":")
    yield place.member("I20", seen, "owners", owned, user)
    yield place.exists(seen, "users", user)
    yield place.exists(seen, f"{kind}s", object_id)


Make = Callable[[_Place, str, str, str], Iterator[Implication]]

_BY_KIND: dict[str, Make] = {
    "users": _of_user,
    "userids": _of_user_id,
    "emails": _of_unique("emails"),
    "contacts": _of_unique("contacts"),
    "role": _of_role,
    "groups": _of_object("groupids"),
    "groupids": _of_id("groups"),
    "supergroups": _of_object("supergroupids"),
    "supergroupids": _of_id("supergroups"),
    "members": _of_pair("memberships", ("users", True)),
    "memberships": _of_pair("members", ("users", False)),
    "parts": _of_pair("wholes", ("groups", True), ("supergroups", False)),
    "wholes": _of_pair("parts", ("supergroups", True), ("groups", False)),
    "owned": _of_owned,
    "owners": _of_pair("owned", ("users", True)),
}

KINDS = tuple(_BY_KIND)
"""The kinds of keys that the directory has."""
