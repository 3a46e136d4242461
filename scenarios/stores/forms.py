"""The answers to the questions of forms, as a table: a row for each person, or several with names (C-95, C-105).

A person that answers again replaces its answer. Rows are kept for 400 days after the person's last answer, and are
deleted with the person. They are in the shard of the person; a table is merged from all shards.
"""

import asyncio
import time
from collections.abc import Mapping
from itertools import chain

import msgspec
from msgspec import Struct

from core.errors import Invalid, cursor_number
from core.model.clock import from_ms, in_ms, write_time
from core.model.json_form import JsonObject, JsonValue
from core.redis.keys import KEYS
from core.redis.store import BEGIN, Store, page_by_score
from scenarios.stores.people import KEPT
from scenarios.stores.step_results import KEPT_MS
from scenarios.stores.variables import read_fields
from scenarios.words import sentence

MOST_ROWS = 100_000
"""Of a form; each shard keeps an equal part."""
MOST_OF_PERSON = 10_000
"""Answers of one person to a form, in all its rows."""
PAGE = 1000
ROW = "row"
"""The column of the names of rows."""
_ROW_END = "\x1f"
"""Behind the name of a row, before that of a question; between a person and the name of its row."""


class FormAnswer(Struct, frozen=True):
    """`n`: the number of the question in its scenario; `at`: ms."""

    n: int
    value: JsonValue
    at: int


Answers = Mapping[str, FormAnswer]
"""Question → answer."""


class FormRow(Struct, frozen=True):
    """The answers of one person, or those in one of its rows, whose name is then the answer `row`: question → answer.
    `person`: `<channel>:<user_id>`; `first`, `last`: when; `name`: that of the person in the directory, filled in by
    the API.
    """

    person: str
    first: str
    last: str
    answers: JsonObject
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
    variables: JsonObject
    forms: Mapping[str, JsonObject]


class Forms:
    """The forms of all tenants."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def note(self, tenant: str, form: str, person: str, answers: Answers, row: str = "", step: str = "") -> None:
        """Store answers in a row; a repeat changes nothing. `row`: its name; `step`: that changes it. Raises Invalid
        FORM_FULL.
        """
        if answers and await self._change(tenant, form, person, row, step, answers) == "full":
            detail = sentence("form_row_most_answers", form=form, most=MOST_OF_PERSON)
            raise Invalid("FORM_FULL", detail, "values")

    async def delete(self, tenant: str, form: str, person: str, row: str = "", step: str = "") -> bool:
        """Delete a row of a person; return whether there was one. A repeat of the step returns the same."""
        return await self._change(tenant, form, person, row, step, {}) == "done"

    async def _change(self, tenant: str, form: str, person: str, row: str, step: str, answers: Answers) -> str:
        channel, _, address = person.partition(":")
        shard, most = self._store.shard_of_person(tenant, channel, address), max(1, MOST_ROWS // self._store.shards)
        texts = [text for name, one in answers.items() for text in (_plain(name), _written(one))]
        at = min((one.at for one in answers.values()), default=0)
        limits = (at, in_ms(KEPT), KEPT_MS, most, MOST_OF_PERSON)
        about = (tenant, form, _plain(row), channel, address, step)
        return str(await self._store.run("change_form_row", shard, *about, *limits, *texts))

    async def names(self, tenant: str) -> list[str]:
        keys = [KEYS["forms"].at(shard, tenant) for shard in range(self._store.shards)]
        found = await asyncio.gather(*(self._store.command("SMEMBERS", key) for key in keys))
        return sorted(set(chain.from_iterable(found)))

    async def table(self, tenant: str, form: str, cursor: str = "", limit: int = PAGE) -> FormTable:
        """Return a page of a form: its rows in the order of their first answers. Raises Invalid CURSOR_MALFORMED."""
        members, following = await self._members(tenant, form, cursor, limit)
        people = [member.partition(_ROW_END)[0] for member in members]
        rows_of = await asyncio.gather(*(self._rows(tenant, form, one) for one in people))
        names = [member.partition(_ROW_END)[2] for member in members]
        found = [(person, name, rows.get(name, {})) for person, name, rows in zip(people, names, rows_of, strict=True)]
        columns: dict[str, int] = {}
        for *_, answers in found:
            columns |= {name: one.n for name, one in answers.items() if one.n < columns.get(name, one.n + 1)}
        rows = [_row(person, name, answers) for person, name, answers in found if answers]
        named = [ROW] if any(names) and ROW not in columns else []
        ordered = sorted(columns, key=lambda name: (columns[name], name))
        return FormTable(form, [*named, *ordered], rows, following)

    async def rows_of(self, tenant: str, form: str, person: str) -> list[FormRow]:
        """Return the rows of a person, in the order of their first answers."""
        rows = [_row(person, name, found) for name, found in (await self._rows(tenant, form, person)).items()]
        return sorted(rows, key=lambda row: row.first)

    async def _members(self, tenant: str, form: str, cursor: str, limit: int) -> tuple[list[str], str | None]:
        """Return the next rows of all shards in the order of their first answers, those of the same ms together, and
        the cursor behind them: the ms of the last one.
        """
        after = cursor_number(cursor) if cursor else BEGIN
        keys = [KEYS["form_people"].at(shard, tenant, form) for shard in range(self._store.shards)]
        pages = await asyncio.gather(*(page_by_score(self._store, key, after, limit) for key in keys))
        found = sorted((at, shard, person) for shard, page in enumerate(pages) for person, at in page)
        if len(found) < limit:
            return [person for *_, person in found], None
        last = found[limit - 1][0]
        return [person for at, _, person in found if at <= last], str(last)

    async def of_person(self, tenant: str, person: str) -> Remembered:
        channel, _, address = person.partition(":")
        shard = self._store.shard_of_person(tenant, channel, address)
        fields = await self._store.command("HGETALL", KEYS["person"].at(shard, tenant, channel, address))
        names = await self._store.command("SMEMBERS", KEYS["forms_of"].at(shard, tenant, channel, address))
        now = time.time_ns() // 1_000_000 + self._store.clock_offset_ms
        answers = {
            f"{form} {row}".strip(): {field: one.value for field, one in found.items()}
            for form in sorted(names)
            for row, found in (await self._rows(tenant, form, person)).items()
        }
        return Remembered(person, read_fields(fields, now), answers)

    async def _rows(self, tenant: str, form: str, person: str) -> dict[str, dict[str, FormAnswer]]:
        """Return the rows of a person: name, "" for the one without → question → answer."""
        channel, _, address = person.partition(":")
        shard = self._store.shard_of_person(tenant, channel, address)
        fields = await self._store.command("HGETALL", KEYS["form_row"].at(shard, tenant, channel, address, form))
        rows: dict[str, dict[str, FormAnswer]] = {}
        for field, text in fields.items():
            row, _, name = field.rpartition(_ROW_END)
            rows.setdefault(row, {})[name] = msgspec.json.decode(text, type=FormAnswer)
        return rows


def _written(answer: FormAnswer) -> str:
    return msgspec.json.encode(answer, enc_hook=str).decode()


def _plain(name: str) -> str:
    return name.replace(_ROW_END, " ")


def _row(person: str, name: str, answers: Mapping[str, FormAnswer]) -> FormRow:
    times = [one.at for one in answers.values()]
    named = {ROW: name} if name else {}
    values = named | {name: one.value for name, one in sorted(answers.items(), key=lambda pair: pair[1].n)}
    return FormRow(person, write_time(from_ms(min(times))), write_time(from_ms(max(times))), values)
