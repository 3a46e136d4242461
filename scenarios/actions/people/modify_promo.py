"""Changes a promo code (C-87)."""

from datetime import UTC, datetime

from msgspec.structs import replace

from core.errors import Invalid
from core.model.clock import to_ms
from scenarios.actions.people.promo_fields import ends_of, starts_of, user_of
from scenarios.context import Context
from scenarios.context.arguments import text_of, whole_of
from scenarios.engine import Ending
from scenarios.engine.results import completed, failed
from scenarios.schema import ActionType, Field, types
from scenarios.schema.promo import EXPIRE, EXPIRED, PERMANENT, RETURNS, STARTED, TARGET, USER
from scenarios.stores import step_results
from scenarios.stores.promo import Promo, Promos, results_of


async def execute(context: Context) -> Ending:
    """Change what is written, once however often it is executed. Raises Refused."""
    promos = Promos(context.services.core.store, context.services.tenant)
    number = whole_of(context.prepared.own, "promo_id") or whole_of(context.prepared.seen, "promo_id")
    if number is None:
        raise Invalid("FIELD_INVALID", "promo_id is missing: create_promo and check_promo return it", "promo_id")
    promo = await promos.with_id(number)
    if promo is None:
        return failed(f"there is no promo with the id {number}")
    if await step_results.recall(context) is None:
        promo = await promos.change(promo, _changed(context, promo))
        await step_results.remember(context, str(number))
    return completed(results_of(promo, context.services.timezone), from_person=["promo_name", "promo_code"])


def _changed(context: Context, promo: Promo) -> Promo:
    """Return the changed promo code. Raises Invalid."""
    own = context.prepared.own
    is_of_person = any(name in own for name in ("user_id", "target_user_id"))
    starts, ends = starts_of(context), ends_of(context, datetime.now(UTC))
    return replace(
        promo,
        code=text_of(own, "promo_code") or promo.code,
        name=text_of(own, "promo_name") or promo.name,
        user_id=user_of(context) if is_of_person else promo.user_id,
        starts=to_ms(starts) if starts else promo.starts,
        ends=to_ms(ends) if ends else promo.ends,
    )


ACTION = ActionType(
    name="modify_promo",
    help="Changes a promo code. What is not written stays.",
    fields=(
        Field("promo_id", types.WHOLE, "Its number; by default that of the action before which has made or found it."),
        Field("promo_code", types.TEXT, "The new code."),
        Field("promo_name", types.TEXT, "What it is for now."),
        USER,
        TARGET,
        STARTED,
        EXPIRED,
        replace(EXPIRE, help="How long it is valid from now on, instead of `expired_at`."),
        PERMANENT,
    ),
    returns=RETURNS,
    execute=execute,
)
