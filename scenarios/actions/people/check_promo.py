"""Checks a promo code (C-87)."""

from datetime import UTC, datetime

from core.model.clock import to_ms
from scenarios.context import Context
from scenarios.context.arguments import text_of
from scenarios.engine import Ending, State, Values
from scenarios.engine.results import completed
from scenarios.schema import ActionType
from scenarios.schema.promo import CODE, NAME, RETURNS, USER
from scenarios.stores.promo import Promos, fault_of, results_of


async def execute(context: Context) -> Ending:
    seen, own, zone = context.prepared.seen, context.prepared.own, context.services.timezone
    code = text_of(seen, "promo_code") or text_of(seen, "event_text")
    promo = await Promos(context.services.core.store, context.services.tenant).find(code)
    name, user = text_of(own, "promo_name"), text_of(seen, "user_id")
    fault = fault_of(promo, name, user, to_ms(datetime.now(UTC))) if promo else "there is no such promo code"
    if promo is None or fault:
        return Ending(State.FAILED, Values({"promo_available": False, "reason": fault}), fault)
    found = results_of(promo, zone)
    results = {**found, "promo_available": True, "promo_data": {**found, "user_id": promo.user_id or None}}
    return completed(results, from_person=["promo_name", "promo_data", "promo_code"])


ACTION = ActionType(
    name="check_promo",
    help="Completes if a promo code is valid for the person now; otherwise it fails, and `error` and `reason` say why."
    " Without `promo_code` the code is the text of the event.",
    fields=(CODE, NAME, USER),
    returns={
        "promo_available": "whether it is valid",
        "promo_data": "all that follows as one mapping, with `user_id`: `{promo_data.promo_name}`",
        "reason": "why it is not valid",
        **RETURNS,
    },
    execute=execute,
)
