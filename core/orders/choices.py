"""The groups, supergroups and people that a person may write to, as a bot offers them; and those with which a written
message begins, by title or id.

    ИВТ-101 Пары не будет            the first words are a whole title; the longest one counts
    ивт: Пары не будет               before a colon or a line break the beginning of a title is enough
    ИВТ-101, ИВТ-102 Пары не будет   a comma, +, "и", "and" and another title with a letter: it goes to both

Without the colon a beginning is not enough: "А пары не будет" must not go to the group "А-12". Letters are compared
without case, ё is е, any number of spaces is one, and a hyphen between a letter and a digit may be a dash or left out:
"ивт101". It may not be a space: "А 12 мая" is a date.
"""

import re
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from msgspec import Struct

from core.directory import Directory
from core.directory.collections import C, Collections, M
from core.model.history_key import Id
from core.model.people import Group, ObjectKind, Supergroup, User, id_text
from core.model.text.characters import nfc
from core.orders.order import Addressee

_PAGE = 500


PERSON = "person"
MOST_WORDS = 12
"""Words of a title that are recognised without a colon or line break."""
_MARKED = re.compile(r"\s*([^\n:]{1,300})[:\n](.*)", re.DOTALL)
_WORD = re.compile(r"[^\s,;]+")
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-‐‑–—](?=\d)|(?<=\d)[-‐‑–—](?=[^\W\d_])")
"""Between a letter and a digit. Between digits it stays: "5-7" is not the group "57"."""
_AND = re.compile(r"\s*[,;]|\s+(?:\+|и|and)(?=\s)", re.IGNORECASE)
_LETTER = re.compile(r"[^\W\d_]")


class Choice(Struct, frozen=True):
    """A group or person that a sender may write to. `kind`: `group`, `supergroup` or `person`; `ref`: `<kind>:<id>`."""

    kind: str
    id: Id
    title: str

    @property
    def ref(self) -> str:
        return f"{self.kind}:{id_text(self.id)}"

    @property
    def short(self) -> str:
        """A name for the data of a button: an id may be longer than that."""
        return blake2b(self.ref.encode(), digest_size=6).hexdigest()


def addressee(ref: str) -> Addressee:
    kind, _, object_id = ref.partition(":")
    if kind == PERSON:
        return Addressee(object_id)
    return Addressee(group=object_id) if kind == "group" else Addressee(supergroup=object_id)


def person_choice(user: User) -> Choice:
    return Choice(PERSON, user.id, user.name or id_text(user.id))


class Addressees:
    """Of one tenant."""

    def __init__(self, directory: Directory, tenant: str) -> None:
        self._directory = directory
        self._tenant = tenant

    async def of(self, user: User | None) -> Sequence[Choice]:
        """Return the groups and supergroups that a person owns; None: all of the tenant. Groups first, sorted by
        title.
        """
        groups, supergroups = await (self._owned(user) if user else self._all())
        kinds: tuple[tuple[ObjectKind, Sequence[Group | Supergroup]], ...] = (
            ("group", groups),
            ("supergroup", supergroups),
        )
        return [choice for kind, some in kinds for choice in _sorted(kind, some)]

    async def _owned(self, user: User) -> tuple[Sequence[Group], Sequence[Supergroup]]:
        owned = await self._directory.ownerships.of(self._tenant, user.id)
        group_ids = [one.id for one in owned if one.kind == "group"]
        super_ids = [one.id for one in owned if one.kind == "supergroup"]
        groups = await self._directory.groups.lookup(self._tenant, group_ids)
        supergroups = await self._directory.supergroups.lookup(self._tenant, super_ids)
        return [one for one in groups if one], [one for one in supergroups if one]

    async def _all(self) -> tuple[Sequence[Group], Sequence[Supergroup]]:
        return await self._all_of(self._directory.groups), await self._all_of(self._directory.supergroups)

    async def _all_of(self, collections: Collections[C, M]) -> Sequence[C]:
        page = await collections.page(self._tenant, limit=_PAGE)
        found = list(page.items)
        while page.next:
            page = await collections.page(self._tenant, cursor=page.next, limit=_PAGE)
            found += page.items
        return found


def _sorted(kind: ObjectKind, some: Sequence[Group | Supergroup]) -> Sequence[Choice]:
    choices = [Choice(kind, one.id, one.title or id_text(one.id)) for one in some]
    return sorted(choices, key=lambda choice: (choice.title.lower(), choice.ref))


class Recognised(Struct, frozen=True):
    """`choices`: the addressees. `text`: what follows them, without spaces around; it may be empty."""

    choices: Sequence[Choice]
    text: str


class UnclearWords(Struct, frozen=True):
    """No addressee or several. `candidates`: those it may be; none if nothing is like it."""

    candidates: Sequence[Choice] = ()


def recognise(text: str, choices: Iterable[Choice]) -> Recognised | UnclearWords:
    """Return the addressees of a message among `choices`."""
    choices = tuple(choices)
    marked = _MARKED.match(text)
    if marked and (found := _named(marked[1], choices) or _beginning_with(marked[1], choices)):
        return _result([found], marked[2])
    name = _first_name(text, choices)
    if not name:
        word = _WORD.search(text)
        return UnclearWords(_beginning_with(word[0], choices) if word else ())
    named, rest = [_named(name, choices)], text[len(name) :]
    while mark := _AND.match(rest):
        further = rest[mark.end() :]
        name = _first_name(further, choices)
        if not _LETTER.search(name):
            break
        named.append(_named(name, choices))
        rest = further[len(name) :]
    return _result(named, rest.lstrip(",;"))


def _first_name(text: str, choices: Sequence[Choice]) -> str:
    """Return the longest whole name in the first words; "" if they begin with none."""
    names = (text[: word.end()] for word in reversed(list(_WORD.finditer(text))[:MOST_WORDS]))
    return next((name for name in names if _named(name, choices)), "")


def _result(named: Sequence[Sequence[Choice]], rest: str) -> Recognised | UnclearWords:
    """Return the addressees of some names; the first name that several have is unclear."""
    if unclear := next((found for found in named if len(found) > 1), ()):
        return UnclearWords(unclear)
    return Recognised([*dict.fromkeys(found[0] for found in named)], rest.strip())


def _named(name: str, choices: Sequence[Choice]) -> Sequence[Choice]:
    name = _plain(name)
    return [one for one in choices if name in _names(one)] if name else ()


def _beginning_with(name: str, choices: Sequence[Choice]) -> Sequence[Choice]:
    name = _plain(name)
    return [one for one in choices if any(other.startswith(name) for other in _names(one))] if name else ()


def _names(choice: Choice) -> tuple[str, str]:
    return _plain(choice.title), _plain(id_text(choice.id))


def _plain(name: str) -> str:
    plain = " ".join(nfc(name).casefold().replace("ё", "е").strip(" \t\r\n:,;").split())
    return _HYPHEN.sub("", plain)
