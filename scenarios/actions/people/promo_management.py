"""Lists promo codes (C-87)."""

import re
from collections.abc import Sequence
from typing import Annotated

from core.model.clock import to_ms
from scenarios.actions.people.promo_attributes import SAMPLE
from scenarios.context import Context
from scenarios.engine import Ending
from scenarios.engine.results import completed, failed
from scenarios.rehearsal import NUMBER, RehearsedStep
from scenarios.schema import ActionType, Attributes, Own, Seen, conversion, types
from scenarios.schema.attributes import Moment, Text, TextOrEmpty, Whole
from scenarios.stores.promo import MOST_LISTED, Promo, Promos, listed
from scenarios.words import sentence

NOTHING = "—"
_OPERATIONS = ("list", "details")
_NUMBER = re.compile(r"\d{1,15}", re.ASCII)


class PromoManagementAttributes(Attributes, frozen=True):
    """`wanted`, `event_text`: the code that an action before has returned, or the person has written, for `details`."""

    operation: Annotated[str, types.choice(*_OPERATIONS), conversion.word(*_OPERATIONS), Seen("What to do.")] = "list"
    promo_name: Annotated[Text, Own("What the code is for.")] = ""
    name_pattern: Annotated[Text, Own("Only codes whose name has this part.")] = ""
    promo_code: Annotated[Text, Own("The code, in capitals or not.")] = ""
    promo_id: Annotated[Whole, Own("`details`: the number of the promo, instead of its code.")] = None
    user_id: Annotated[Text, Own("Only codes of this person.")] = ""
    user_filter: Annotated[Text, Own(alias_of="user_id")] = ""
    expired_before: Annotated[Moment, Own("Only codes that expire before this date.")] = None
    expired_after: Annotated[Moment, Own("Only codes that are valid beyond this date.")] = None
    limit: Annotated[
        Whole, Own(f"At most so many codes, up to {MOST_LISTED}; `…` at the end: there are more.", default=MOST_LISTED)
    ] = None
    empty_text: Annotated[
        TextOrEmpty, Seen('What an empty list returns as `text`; `""` for none.', may_be_empty=True)
    ] = NOTHING
    wanted: Annotated[Text, Seen(key="promo_code")] = ""
    event_text: Annotated[Text, Seen()] = ""

    def matches(self, promo: Promo) -> bool:
        """Return whether a promo is one of those that the author wants."""
        before, after = self.expired_before, self.expired_after
        return (
            self.promo_name in ("", promo.name)
            and (self.user_id or self.user_filter) in ("", promo.user_id)
            and self.name_pattern.casefold() in promo.name.casefold()
            and self.promo_code.upper() in ("", promo.code.upper())
            and (before is None or 0 < promo.ends < to_ms(before))
            and (after is None or not promo.ends or promo.ends > to_ms(after))
        )


async def execute(context: Context, written: PromoManagementAttributes) -> Ending:
    """Execute an operation on promo codes. Raises Refused."""
    promos = Promos(context.services.core.store, context.services.tenant)
    most = min(max(written.limit or MOST_LISTED, 1), MOST_LISTED)
    if written.operation == "details":
        found = await _details(promos, written)
        if not found:
            return failed(sentence("no_such_promo_code"))
    else:
        found = await promos.newest(most + 1, written.matches)
    return _shown(listed(found, context.services.timezone, most) or written.empty_text)


def rehearse(step: RehearsedStep, written: PromoManagementAttributes) -> Ending:
    name = str(step.prepared.seen.get("promo_name") or "")
    promo = Promo(written.promo_code or SAMPLE, name, written.user_id or step.person, to_ms(step.now), id=NUMBER)
    return _shown(listed([promo], step.zone))


async def _details(promos: Promos, written: PromoManagementAttributes) -> Sequence[Promo]:
    """Return promo codes by `promo_id`, otherwise by the code or number that the author or the person has written."""
    code = written.wanted or written.event_text
    if written.promo_id is not None:
        promo = await promos.with_id(written.promo_id)
    else:
        promo = await promos.find(code) or (await promos.with_id(int(code)) if _NUMBER.fullmatch(code) else None)
    return [promo] if promo else []


def _shown(text: str | None) -> Ending:
    return completed(dict.fromkeys(("text", "response_text"), text) if text else {})


ACTION = ActionType(
    name="promo_management",
    help="Lists promo codes, newest first, or shows one. It fails if there is no such code; an empty list is no"
    " failure.",
    attributes=PromoManagementAttributes,
    returns={
        "text": "what was found, in HTML; it replaces the text of the next `send`",
        "response_text": "the same as `text`",
    },
    execute=execute,
    rehearse=rehearse,
)
