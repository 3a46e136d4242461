"""The answers to the questions of forms, as a table: a row for each person (C-95).

A person that answers again replaces its answer. Rows are kept for 400 days after their last answer, and are deleted
with the person. They are in the shard of the person; a table is merged from all shards.
"""

import asyncio
import time
from collections.abc import Mapping
from itertools import chain
from typing import Any

import msgspec
from msgspec import Struct

from core.errors import Invalid
from core.model.clock import from_ms, in_ms, write_time
from core.redis.keys import KEYS
from core.redis.store import Store
from scenarios.stores.people import KEPT
from scenarios.stores.variables import read_fields

MOST_ROWS = 100_000
"""Of a form; each shard keeps an equal part."""
PAGE = 1000


class FormAnswer(Struct, frozen=True):
    """`n`: the number of the question in its scenario; `at`: ms."""

    n: int
    value: Any
    at: int


class FormRow(Struct, frozen=True):
    """The answers of one person: question → answer. `person`: `<channel>:<user_id>`; `first`, `last`: when; `name`:
    that of the person in the directory, filled in by the API.
    """

    person: str
    first: str
    last: str
    answers: Mapping[str, Any]
    name: str | None = None


class FormTable(Struct, frozen=True):
    """A page of a form. `columns`: the questions, in their order. `next`: the cursor of the next page."""

    form: str
    columns: list[str]
    rows: list[FormRow]
    next: str | None


class Remembered(Struct, frozen=True):
    """The data that the bot stores of a person: its variables, and its answers to forms."""

    person: str
    variables: Mapping[str, Any]
    forms: Mapping[str, Mapping[str, Any]]


class Forms:
    """The forms of all tenants."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def note(self, tenant: str, form: str, person: str, field: str, answer: FormAnswer) -> None:
        """Store an answer; a repeat changes nothing."""
        channel, _, address = person.partition(":")
        text = msgspec.json.encode(answer, enc_hook=str).decode()
        most = max(1, MOST_ROWS // self._store.shards)
        arguments = (tenant, form, channel, address, field, text, answer.at, in_ms(KEPT), most)
        await self._store.run("note_form_answer", self._store.shard_of_person(tenant, channel, address), *arguments)

    async def names(self, tenant: str) -> list[str]:
        """Return the forms with answers."""
        keys = [KEYS["forms"].at(shard, tenant) for shard in range(self._store.shards)]
        found = await asyncio.gather(*(self._store.command("SMEMBERS", key) for key in keys))
        return sorted(set(chain.from_iterable(found)))

    async def table(self, tenant: str, form: str, cursor: str = "", limit: int = PAGE) -> FormTable:
        """Return a page of a form: its rows in the order of their first answers. Raises Invalid CURSOR_MALFORMED."""
        people, following = await self._people(tenant, form, cursor, limit)
        answered = await asyncio.gather(*(self._answers(tenant, form, one) for one in people))
        found = list(zip(people, answered, strict=True))
        columns: dict[str, int] = {}
        for _, answers in found:
            columns |= {name: one.n for name, one in answers.items() if one.n < columns.get(name, one.n + 1)}
        rows = [_row(person, answers) for person, answers in found if answers]
        ordered = sorted(columns, key=lambda name: (columns[name], name))
        return FormTable(form, ordered, rows, following)

    async def _people(self, tenant: str, form: str, cursor: str, limit: int) -> tuple[list[str], str | None]:
        """Return the next people of all shards in the order of their first answers, and the cursor behind them: how
        many of each shard were read.
        """
        read = _read_counts(cursor, self._store.shards)
        keys = [KEYS["form_people"].at(shard, tenant, form) for shard in range(self._store.shards)]
        pages = await asyncio.gather(
            *(
                self._store.command("ZRANGE", key, count, count + limit - 1, "WITHSCORES")
                for key, count in zip(keys, read, strict=True)
            )
        )
        found = [(at, shard, person) for shard, page in enumerate(pages) for person, at in page]
        page = sorted(found, key=lambda one: one[:2])[:limit]
        for _, shard, _ in page:
            read[shard] += 1
        return [person for *_, person in page], "-".join(map(str, read)) if len(page) == limit else None

    async def of_person(self, tenant: str, person: str) -> Remembered:
        channel, _, address = person.partition(":")
        shard = self._store.shard_of_person(tenant, channel, address)
        fields = await self._store.command("HGETALL", KEYS["person"].at(shard, tenant, channel, address))
        names = await self._store.command("SMEMBERS", KEYS["forms_of"].at(shard, tenant, channel, address))
        now = time.time_ns() // 1_000_000 + self._store.clock_offset_ms
        forms = {name: await self._answers(tenant, name, person) for name in sorted(names)}
        answers = {name: {field: one.value for field, one in found.items()} for name, found in forms.items()}
        return Remembered(person, read_fields(fields, now), answers)

    async def _answers(self, tenant: str, form: str, person: str) -> dict[str, FormAnswer]:
        channel, _, address = person.partition(":")
        shard = self._store.shard_of_person(tenant, channel, address)
        fields = await self._store.command("HGETALL", KEYS["form_row"].at(shard, tenant, channel, address, form))
        return {name: msgspec.json.decode(text, type=FormAnswer) for name, text in fields.items()}


def _read_counts(cursor: str, shards: int) -> list[int]:
    """Return how many rows of each shard come before a cursor. Raises Invalid CURSOR_MALFORMED."""
    counts = [int(count) for count in cursor.split("-") if count.isdecimal()] if cursor else [0] * shards
    if len(counts) != shards:
        raise Invalid("CURSOR_MALFORMED", "This is not a cursor of this list.", "cursor")
    return counts


def _row(person: str, answers: Mapping[str, FormAnswer]) -> FormRow:
    times = [one.at for one in answers.values()]
    values = {name: one.value for name, one in sorted(answers.items(), key=lambda pair: pair[1].n)}
    return FormRow(person, write_time(from_ms(min(times))), write_time(from_ms(max(times))), values)
