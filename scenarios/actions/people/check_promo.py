"""Checks a promo code (C-87)."""

from datetime import datetime, tzinfo
from typing import Annotated

from msgspec import structs

from core.model.clock import to_ms
from scenarios.actions.people.promo_attributes import FROM_PERSON, RETURNS, SAMPLE
from scenarios.context import Context
from scenarios.engine import Ending, State, Values
from scenarios.engine.results import completed
from scenarios.rehearsal import NUMBER, RehearsedStep
from scenarios.schema import ActionType, Attributes, Own, Seen
from scenarios.schema.attributes import Text
from scenarios.stores.promo import Promo, Promos, fault_of, results_of
from scenarios.words import sentence


class CheckPromoAttributes(Attributes, frozen=True):
    """`event_text`: what the person wrote, which is the code if the author names none."""

    promo_name: Annotated[Text, Own("What the code is for.")] = ""
    promo_code: Annotated[Text, Seen("The code, in capitals or not.")] = ""
    user_id: Annotated[Text, Seen("The person who wants to use it, by default that of the event.")] = ""
    event_text: Annotated[Text, Seen()] = ""

    @property
    def code(self) -> str:
        return self.promo_code or self.event_text


async def execute(context: Context, written: CheckPromoAttributes) -> Ending:
    promo = await Promos(context.services.core.store, context.services.tenant).find(written.code)
    return _checked(promo, written, context.services.now(), context.services.timezone)


def rehearse(step: RehearsedStep, written: CheckPromoAttributes) -> Ending:
    """Any code is valid."""
    name = step.prepared.seen.get("promo_name") or written.promo_name
    sample = Promo(written.code or SAMPLE, str(name), written.user_id, to_ms(step.now), id=NUMBER)
    return _checked(sample, structs.replace(written, promo_name=""), step.now, step.zone)


def _checked(promo: Promo | None, written: CheckPromoAttributes, now: datetime, zone: tzinfo) -> Ending:
    fault = (
        fault_of(promo, written.promo_name, written.user_id, to_ms(now)) if promo else sentence("no_such_promo_code")
    )
    if promo is None or fault:
        return Ending(State.FAILED, Values({"promo_available": False, "reason": str(fault)}), fault)
    found = results_of(promo, zone)
    results = {**found, "promo_available": True, "promo_data": {**found, "user_id": promo.user_id or None}}
    return completed(results, from_person=["promo_data", *FROM_PERSON])


ACTION = ActionType(
    name="check_promo",
    help="Completes if a promo code is valid for the person now; otherwise it fails, and `error` and `reason` say why."
    " Without `promo_code` the code is the text of the event.",
    attributes=CheckPromoAttributes,
    with_failure=("promo_available", "reason"),
    returns={
        "promo_available": "whether it is valid",
        "promo_data": "all that follows as one mapping, with `user_id`: `{promo_data.promo_name}`",
        "reason": "why it is not valid",
        **RETURNS,
    },
    execute=execute,
    rehearse=rehearse,
)
