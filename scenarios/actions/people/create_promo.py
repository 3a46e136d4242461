"""Makes a promo code (C-87)."""

from typing import Annotated

from msgspec import structs

from core.errors import Invalid
from scenarios.actions.people.promo_attributes import FROM_PERSON, RETURNS, SAMPLE, PromoAttributes
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed
from scenarios.rehearsal import NUMBER, RehearsedStep
from scenarios.schema import ActionType, Own, Seen
from scenarios.schema.attributes import Flag, OptionalFlag, Text, Whole
from scenarios.stores.promo import DIGITS, LENGTH, LETTERS, Promos, new_code, results_of, salted_code
from scenarios.words import sentence

_SHORTEST, _LONGEST = 4, 32


class CreatePromoAttributes(PromoAttributes, frozen=True):
    salt: Annotated[Text, Seen("With it the same name, person and salt always give the same code.")] = ""
    use_random: Annotated[OptionalFlag, Seen("Whether the code is random; without it, if there is no salt.")] = None
    length: Annotated[Whole, Seen(f"Characters of a code, {_SHORTEST} to {_LONGEST}.", default=LENGTH)] = None
    use_digits: Annotated[Flag, Own("Whether a made code has digits.")] = True
    use_letters: Annotated[Flag, Own("Whether a made code has letters.")] = True

    def code(self, user: str) -> str:
        """Return the code that the author wrote, otherwise with a salt always the same one, otherwise a random one.
        The code of an earlier action of the chain is not this one's. Raises Invalid.
        """
        if self.promo_code:
            return self.promo_code
        length, alphabet = self.length or LENGTH, LETTERS * self.use_letters + DIGITS * self.use_digits
        if not alphabet:
            raise Invalid("FIELD_INVALID", sentence("use_digits_code_has_letters"), "use_digits")
        if not _SHORTEST <= length <= _LONGEST:
            raise Invalid(
                "FIELD_INVALID", sentence("length_code_has_characters", least=_SHORTEST, most=_LONGEST), "length"
            )
        if not self.salt if self.use_random is None else self.use_random:
            return new_code(length, alphabet)
        return salted_code(self.promo_name, user, self.salt, length, alphabet)


async def execute(context: Context, written: CreatePromoAttributes) -> Ending:
    """Make one code, however often it is executed. Raises Refused."""
    code = written.code(written.user(context.person))
    promo = written.promo(code, context.person, context.services.now(), context.identity)
    stored = await Promos(context.services.core.store, context.services.tenant).store(promo)
    return completed(results_of(stored, context.services.timezone), from_person=FROM_PERSON)


def rehearse(step: RehearsedStep, written: CreatePromoAttributes) -> Ending:
    promo = structs.replace(written.promo(written.promo_code or SAMPLE, step.person, step.now), id=NUMBER)
    return completed(results_of(promo, step.zone), from_person=FROM_PERSON)


ACTION = ActionType(
    name="create_promo",
    help="Makes a promo code: the written one, with a salt always the same one, otherwise a random one.",
    attributes=CreatePromoAttributes,
    returns=RETURNS,
    execute=execute,
    rehearse=rehearse,
)
