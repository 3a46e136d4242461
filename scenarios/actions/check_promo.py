"""Checks a promo code (C-87)."""

from datetime import UTC, datetime

from core.model.clock import to_ms
from scenarios.arguments import text_of
from scenarios.context import Context
from scenarios.endings import completed
from scenarios.engine import Ending, State, Values
from scenarios.promo import Promos, end_of, fault_of
from scenarios.schema import ActionType
from scenarios.schema.promo import CODE, NAME, USER


async def execute(context: Context) -> Ending:
    seen, own = context.prepared.seen, context.prepared.own
    code = text_of(seen, "promo_code") or text_of(seen, "event_text")
    promo = await Promos(context.services.store, context.services.tenant).find(code)
    name, user = text_of(own, "promo_name"), text_of(seen, "user_id")
    fault = fault_of(promo, name, user, to_ms(datetime.now(UTC))) if promo else "there is no such promo code"
    if promo is None or fault:
        return Ending(State.FAILED, Values({"promo_available": False}), fault)
    return completed({"promo_code": promo.code, "promo_available": True, **end_of(promo, context.services.timezone)})


ACTION = ActionType(
    name="check_promo",
    help="Completes if a promo code is valid for the person now; otherwise it fails, and `error` says why. Without"
    " `promo_code` the code is the text of the event.",
    fields=(CODE, NAME, USER),
    returns={
        "promo_code": "the code as it was made",
        "promo_available": "whether it is valid",
        "expired_at": "when it stops being valid, if it ever does",
    },
    execute=execute,
)
