"""Changes a promo code (C-87)."""

from datetime import datetime
from typing import Annotated

from msgspec.structs import replace

from core.errors import Invalid
from core.model.clock import to_ms
from scenarios.actions.people.promo_attributes import FROM_PERSON, RETURNS, SAMPLE, PromoAttributes
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed, failed
from scenarios.rehearsal import NUMBER, RehearsedStep
from scenarios.schema import ActionType, Own, Seen
from scenarios.schema.attributes import Duration, Text, Whole
from scenarios.stores import step_results
from scenarios.stores.promo import Promo, Promos, results_of
from scenarios.words import sentence


class ModifyPromoAttributes(PromoAttributes, frozen=True):
    promo_id: Annotated[
        Whole,
        Seen("Its number; by default that of the action before which has made or found it.", together=("promo_id",)),
    ] = None
    promo_code: Annotated[Text, Own("The new code.")] = ""
    promo_name: Annotated[Text, Own("What it is for now.")] = ""
    expire: Annotated[Duration, Own("How long it is valid from now on, instead of `expired_at`.")] = None

    def changed(self, promo: Promo, person: str, now: datetime) -> Promo:
        """Return the promo code with what is written."""
        starts, ends = self.starts(), self.ends(now)
        return replace(
            promo,
            code=self.promo_code or promo.code,
            name=self.promo_name or promo.name,
            user_id=self.user(person) if self.names_person else promo.user_id,
            starts=to_ms(starts) if starts else promo.starts,
            ends=to_ms(ends) if ends else promo.ends,
        )


async def execute(context: Context, written: ModifyPromoAttributes) -> Ending:
    """Change what is written, once however often it is executed. Raises Refused."""
    promos, number = Promos(context.services.core.store, context.services.tenant), _number(written)
    promo = await promos.with_id(number)
    if promo is None:
        return failed(sentence("no_promo_id", number=number))
    if await step_results.recall(context) is None:
        promo = await promos.change(promo, written.changed(promo, context.person, context.services.now()))
        await step_results.remember(context, str(number))
    return completed(results_of(promo, context.services.timezone), from_person=FROM_PERSON)


def rehearse(step: RehearsedStep, written: ModifyPromoAttributes) -> Ending:
    """Any number has a promo code."""
    name = str(step.prepared.seen.get("promo_name") or "")
    sample = Promo(SAMPLE, name, written.user(step.person), to_ms(step.now), id=NUMBER)
    promo = written.changed(sample, step.person, step.now)
    return completed(results_of(promo, step.zone), from_person=FROM_PERSON)


def _number(written: ModifyPromoAttributes) -> int:
    if written.promo_id is None:
        raise Invalid("FIELD_INVALID", sentence("promo_id_missing_create_promo_check_promo"), "promo_id")
    return written.promo_id


ACTION = ActionType(
    name="modify_promo",
    help="Changes a promo code. What is not written stays.",
    attributes=ModifyPromoAttributes,
    returns=RETURNS,
    execute=execute,
    rehearse=rehearse,
)
