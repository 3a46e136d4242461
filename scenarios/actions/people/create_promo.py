"""Makes a promo code (C-87)."""

from datetime import UTC, datetime

from core.errors import Invalid
from core.model.clock import to_ms
from scenarios.actions.people.promo_fields import ends_of, name_of, starts_of, user_of
from scenarios.context import Context
from scenarios.context.arguments import flag_of, text_of, whole_of
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.schema import ActionType, Field, types
from scenarios.schema.promo import CODE, EXPIRE, EXPIRED, NAME, PERMANENT, RETURNS, STARTED, TARGET, USER
from scenarios.stores.promo import DIGITS, LENGTH, LETTERS, Promo, Promos, new_code, results_of, salted_code

_SHORTEST, _LONGEST = 4, 32


async def execute(context: Context) -> Ending:
    """Make one code, however often it is executed. Raises Refused."""
    name, user = name_of(context), user_of(context)
    starts = starts_of(context) or datetime.now(UTC)
    ends = ends_of(context, starts)
    promo = Promo(_code(context, name, user), name, user, to_ms(starts), to_ms(ends) if ends else 0, context.identity)
    stored = await Promos(context.services.core.store, context.services.tenant).store(promo)
    return completed(results_of(stored, context.services.timezone), from_person=["promo_name", "promo_code"])


def _code(context: Context, name: str, user: str) -> str:
    """Return the code that the author wrote, otherwise with a salt always the same one, otherwise a random one.

    The code of an earlier action of the chain is not this one's.
    """
    own, seen = context.prepared.own, context.prepared.seen
    if written := text_of(own, "promo_code"):
        return written
    length, salt, alphabet = whole_of(seen, "length") or LENGTH, text_of(seen, "salt"), _alphabet(context)
    if not _SHORTEST <= length <= _LONGEST:
        raise Invalid("FIELD_INVALID", f"length: a code has {_SHORTEST} to {_LONGEST} characters", "length")
    if flag_of(seen, "use_random", default=not salt):
        return new_code(length, alphabet)
    return salted_code(name, user, salt, length, alphabet)


def _alphabet(context: Context) -> str:
    own = context.prepared.own
    chosen = {"use_letters": LETTERS, "use_digits": DIGITS}
    alphabet = "".join(characters for name, characters in chosen.items() if flag_of(own, name, default=True))
    if not alphabet:
        raise Invalid("FIELD_INVALID", "use_digits: a code has letters or digits, or both", "use_digits")
    return alphabet


ACTION = ActionType(
    name="create_promo",
    help="Makes a promo code: the written one, with a salt always the same one, otherwise a random one.",
    fields=(
        NAME,
        CODE,
        USER,
        TARGET,
        STARTED,
        EXPIRED,
        EXPIRE,
        PERMANENT,
        Field("salt", types.TEXT, "With it the same name, person and salt always give the same code."),
        Field("use_random", types.FLAG, "Whether the code is random; without it, if there is no salt."),
        Field("length", types.WHOLE, f"Characters of a code, {_SHORTEST} to {_LONGEST}.", default=LENGTH),
        Field("use_digits", types.FLAG, "Whether a made code has digits.", default=True),
        Field("use_letters", types.FLAG, "Whether a made code has letters.", default=True),
    ),
    returns=RETURNS,
    execute=execute,
)
