"""Makes a promo code (C-87)."""

import re
from datetime import MAXYEAR, UTC, datetime, timedelta

from core.errors import Invalid
from core.model.clock import to_ms
from scenarios.arguments import duration_of, flag_of, moment_of, text_of, whole_of
from scenarios.context import Context
from scenarios.endings import completed
from scenarios.engine import Ending
from scenarios.promo import LENGTH, Promo, Promos, end_of, new_code, salted_code
from scenarios.schema import ActionType, Field, types
from scenarios.schema.promo import CODE, EVERYBODY, NAME, TARGET, USER

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}|\d{2}\.\d{2}\.\d{4}", re.ASCII)
_SHORTEST, _LONGEST = 4, 32


async def execute(context: Context) -> Ending:
    """Makes one code, however often it is executed. Raises Refused."""
    seen, name = context.prepared.seen, text_of(context.prepared.seen, "promo_name")
    user = text_of(seen, "target_user_id" if "target_user_id" in seen else "user_id")
    user = "" if user.lower() in EVERYBODY else user
    starts = moment_of(seen, "started_at", context.services.timezone) or datetime.now(UTC)
    ends = _ends(context, starts)
    promo = Promo(_code(context, name, user), name, user, to_ms(starts), to_ms(ends) if ends else 0, context.identity)
    stored = await Promos(context.services.store, context.services.tenant).store(promo)
    return completed({"promo_code": stored.code, **end_of(stored, context.services.timezone)})


def _code(context: Context, name: str, user: str) -> str:
    """The code that the author wrote, otherwise with a salt always the same one, otherwise a random one.

    The code of an earlier action of the chain is not this one's.
    """
    own, seen = context.prepared.own, context.prepared.seen
    if written := text_of(own, "promo_code"):
        return written
    length, salt = whole_of(seen, "length") or LENGTH, text_of(seen, "salt")
    if not _SHORTEST <= length <= _LONGEST:
        raise Invalid("FIELD_INVALID", f"length: a code has {_SHORTEST} to {_LONGEST} characters", "length")
    if flag_of(seen, "use_random", default=not salt):
        return new_code(length)
    return salted_code(name, user, salt, length)


def _ends(context: Context, starts: datetime) -> datetime | None:
    """When the code stops being valid: a day counts to its end. None: never."""
    own, zone = context.prepared.own, context.services.timezone
    if (lifetime := duration_of(own, "expire")) is not None:
        return starts + lifetime
    ends = moment_of(own, "expired_at", zone)
    is_day = _DAY.fullmatch(text_of(own, "expired_at")) is not None
    return ends.astimezone(zone) + timedelta(days=1) if ends and is_day and ends.year < MAXYEAR else ends


ACTION = ActionType(
    name="create_promo",
    help="Makes a promo code: the written one, with a salt always the same one, otherwise a random one.",
    fields=(
        NAME,
        CODE,
        USER,
        TARGET,
        Field("started_at", types.DATE, "When it begins to be valid; without it, now."),
        Field("expired_at", types.DATE, "When it stops being valid; a day counts to its end. Without it, never."),
        Field("expire", types.DURATION, "How long it is valid, instead of `expired_at`."),
        Field("salt", types.TEXT, "With it the same name, person and salt always give the same code."),
        Field("use_random", types.FLAG, "Whether the code is random; without it, if there is no salt."),
        Field("length", types.WHOLE, f"Characters of a code, {_SHORTEST} to {_LONGEST}.", default=LENGTH),
    ),
    returns={"promo_code": "the code", "expired_at": "when it stops being valid, if it ever does"},
    execute=execute,
)
