"""Reads, writes and deletes rows of a form (C-105)."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Annotated

from core.errors import Invalid, NotFound
from scenarios.bot.data import Data
from scenarios.context import Context
from scenarios.engine import Ending, Values, completed
from scenarios.rehearsal import RehearsedStep
from scenarios.schema import ActionType, Attributes, Own
from scenarios.schema.attributes import Fields, Flag, Text
from scenarios.stores.forms import PAGE, ROW, FormAnswer, FormRow, Forms
from scenarios.words import sentence


class FormAttributes(Attributes, frozen=True):
    form: Annotated[Text, Own("The form.")] = ""
    row: Annotated[Text, Own("The name of the row; without it the one row of a person that has no name.")] = ""
    values: Annotated[Fields, Own("What to write into the row, by column. A row that is not there comes to be.")] = {}
    delete: Annotated[Flag, Own("Whether the row is deleted; without a row the action fails with `NO_ROW`.")] = False
    everybody: Annotated[Flag, Own("Whether the rows of all people are returned, not only the person's.")] = False

    def check(self) -> None:
        """Raises Invalid FIELD_INVALID."""
        if self.delete and self.values:
            raise Invalid("FIELD_INVALID", sentence("form_values_or_delete"), "values")


async def execute(context: Context, written: FormAttributes) -> Ending:
    """Change the row once, however often it is executed. Raises Refused."""
    written.check()
    forms, tenant = Forms(context.services.core.store), context.services.tenant
    person = f"{context.channel}:{context.person}"
    if written.delete:
        if not await forms.delete(tenant, written.form, person, written.row, context.identity):
            raise no_row(written)
    else:
        at, numbers = context.services.now_ms(), count(context.step.path[-1] + 1)
        answers = {str(name): FormAnswer(next(numbers), value, at) for name, value in written.values.items()}
        await forms.note(tenant, written.form, person, answers, written.row, context.identity)
    if written.everybody:
        return await _ending_of_all(forms, tenant, written.form)
    return _ending(await forms.rows_of(tenant, written.form, person))


def rehearse(step: RehearsedStep, written: FormAttributes) -> Ending:
    """The person has the row that is written."""
    written.check()
    answers = {str(name): value for name, value in written.values.items()}
    row = FormRow(f"{step.channel}:{step.person}", "", "", ({ROW: written.row} if written.row else {}) | answers)
    return _ending([] if written.delete else [row])


def no_row(written: FormAttributes) -> NotFound:
    return NotFound("NO_ROW", sentence("form_has_no_row", form=written.form, row=written.row))


async def _ending_of_all(forms: Forms, tenant: str, form: str) -> Ending:
    """Return the first page of rows, and how many there are in all."""
    page = await forms.table(tenant, form, limit=PAGE)
    total, rows = len(page.rows), page.rows
    while page.next:
        page = await forms.table(tenant, form, page.next, PAGE)
        total += len(page.rows)
    ending = _ending(rows)
    return replace(ending, returned=ending.returned.and_then(Values({"count": total})))


def _ending(rows: Sequence[FormRow]) -> Ending:
    found: list[Data] = [{"person": one.person, **one.answers} for one in rows]
    names = [str(one.answers[ROW]) for one in rows if ROW in one.answers]
    return completed({"rows": found, "row_names": names, "count": len(found)}, from_person={"rows", "row_names"})


ACTION = ActionType(
    name="form",
    help="Writes a row of a form without asking, changes or deletes it, and returns the rows of the person as they are"
    f" now, or those of all people, at most {PAGE}, the oldest first.",
    attributes=FormAttributes,
    placeholder=True,
    one_of=("form",),
    returns={
        "rows": "the rows: of each `person`, `row` if it has a name, and the answers",
        "row_names": "their names, such as for the `options` of a question",
        "count": f"how many they are; with `everybody` all, also those after the {PAGE} that `rows` has",
    },
    execute=execute,
    rehearse=rehearse,
)
