"""Makes, checks, changes and lists promo codes (C-87).

What an earlier action of the chain has returned is not an attribute of these, so only what the author wrote counts.
"""

import re
from collections.abc import Sequence
from datetime import MAXYEAR, datetime, timedelta, tzinfo
from typing import Annotated

from msgspec import structs
from msgspec.structs import replace

from core.errors import Invalid
from core.model.clock import to_ms
from scenarios.bot.data import Data
from scenarios.context import Context
from scenarios.engine import Ending, completed, failed
from scenarios.placeholders.values import as_text
from scenarios.rehearsal import NUMBER, RehearsedStep
from scenarios.schema import ActionType, Attributes, Own, Seen, conversion, types
from scenarios.schema.attributes import Duration, Flag, Moment, OptionalFlag, Text, TextOrEmpty, Whole
from scenarios.stores import step_results
from scenarios.stores.promo import (
    ALWAYS,
    DIGITS,
    LENGTH,
    LETTERS,
    MOST_LISTED,
    Promo,
    Promos,
    fault_of,
    listed,
    new_code,
    results_of,
    salted_code,
)
from scenarios.words import in_language, sentence

RETURNS = {
    "promo_id": "its number, for `modify_promo`",
    "promo_code": "the code",
    "promo_name": "what it is for",
    "target_user_id": "the only person who may use it; null: all people",
    "started_at": "when it begins to be valid",
    "expired_at": "when it stops being valid, if it ever does",
    "permanent": "whether it is permanent",
}
FROM_PERSON = ("promo_name", "promo_code")
ALL_PEOPLE = ("", "any", "all", "null", "none", "0")
"""The author's word for a code that is for all people."""

SAMPLE = "SAMPLE-22"
"""The code of a rehearsal."""

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}|\d{2}\.\d{2}\.\d{4}", re.ASCII)


def _end(value: Data, name: str, zone: tzinfo) -> datetime | None:
    """Return a moment; a day counts to its last second."""
    ends = conversion.moment(value, name, zone)
    is_day = _DAY.fullmatch(as_text(value).strip()) is not None
    return ends.astimezone(zone) + timedelta(days=1, seconds=-1) if ends and is_day and ends.year < MAXYEAR else ends


End = Annotated[datetime | None, types.DATE, _end]


class PromoAttributes(Attributes, frozen=True):
    """The fields that `create_promo` and `modify_promo` share."""

    promo_name: Annotated[Text, Seen("What the code is for.", together=("promo_name",))] = ""
    promo_code: Annotated[Text, Own("The code, in capitals or not.")] = ""
    user_id: Annotated[
        TextOrEmpty,
        Own('The only person who may use it, by default that of the event; `any` or `""`: all people.'),
    ] = None
    target_user_id: Annotated[TextOrEmpty, Own(alias_of="user_id")] = None
    started_at: Annotated[Moment, Own("When it begins to be valid; without it, now.")] = None
    expired_at: Annotated[End, Own("When it stops being valid; a day counts to its end. Without it, never.")] = None
    expire: Annotated[Duration, Own("How long it is valid, instead of `expired_at`.")] = None
    permanent: Annotated[Flag, Own("Valid from 2000 to 2999, instead of the dates.")] = False

    @property
    def names_person(self) -> bool:
        return self.target_user_id is not None or self.user_id is not None

    def user(self, person: str) -> str:
        """Return the only person who may use it, by default that of the event; "" for all people."""
        named = person if self.user_id is None else self.user_id
        named = named if self.target_user_id is None else self.target_user_id
        return "" if named.lower() in ALL_PEOPLE else named

    def starts(self) -> datetime | None:
        """Return when the code begins to be valid; None if it is not written."""
        return ALWAYS[0] if self.permanent else self.started_at

    def ends(self, starts: datetime) -> datetime | None:
        """Return when the code stops being valid. None: never, or not written."""
        if self.permanent:
            return ALWAYS[1]
        return self.expired_at if self.expire is None else starts + self.expire

    def promo(self, code: str, person: str, now: datetime, step: str = "") -> Promo:
        """Return the promo code that is written."""
        starts = self.starts() or now
        ends = self.ends(starts)
        return Promo(code, self.promo_name, self.user(person), to_ms(starts), to_ms(ends) if ends else 0, step)


_SHORTEST_CODE, _LONGEST_CODE = 4, 32


class CreatePromoAttributes(PromoAttributes, frozen=True):
    salt: Annotated[Text, Seen("With it the same name, person and salt always give the same code.")] = ""
    use_random: Annotated[OptionalFlag, Seen("Whether the code is random; without it, if there is no salt.")] = None
    length: Annotated[Whole, Seen(f"Characters of a code, {_SHORTEST_CODE} to {_LONGEST_CODE}.", default=LENGTH)] = None
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
        if not _SHORTEST_CODE <= length <= _LONGEST_CODE:
            raise Invalid(
                "FIELD_INVALID",
                sentence("length_code_has_characters", least=_SHORTEST_CODE, most=_LONGEST_CODE),
                "length",
            )
        if not self.salt if self.use_random is None else self.use_random:
            return new_code(length, alphabet)
        return salted_code(self.promo_name, user, self.salt, length, alphabet)


async def execute_create_promo(context: Context, written: CreatePromoAttributes) -> Ending:
    """Make one code, however often it is executed. Raises Refused."""
    code = written.code(written.user(context.person))
    promo = written.promo(code, context.person, context.services.now(), context.identity)
    stored = await Promos(context.services.core.store, context.services.tenant).store(promo)
    return completed(results_of(stored, context.services.timezone), from_person=FROM_PERSON)


def rehearse_create_promo(step: RehearsedStep, written: CreatePromoAttributes) -> Ending:
    promo = structs.replace(written.promo(written.promo_code or SAMPLE, step.person, step.now), id=NUMBER)
    return completed(results_of(promo, step.zone), from_person=FROM_PERSON)


CREATE_PROMO = ActionType(
    name="create_promo",
    help="Makes a promo code: the written one, with a salt always the same one, otherwise a random one.",
    attributes=CreatePromoAttributes,
    returns=RETURNS,
    execute=execute_create_promo,
    rehearse=rehearse_create_promo,
)


class CheckPromoAttributes(Attributes, frozen=True):
    """`event_text`: what the person wrote, which is the code if the author names none."""

    promo_name: Annotated[Text, Own("What the code is for.")] = ""
    promo_code: Annotated[Text, Seen("The code, in capitals or not.")] = ""
    user_id: Annotated[Text, Seen("The person who wants to use it, by default that of the event.")] = ""
    event_text: Annotated[Text, Seen()] = ""

    @property
    def code(self) -> str:
        return self.promo_code or self.event_text


async def execute_check_promo(context: Context, written: CheckPromoAttributes) -> Ending:
    promo = await Promos(context.services.core.store, context.services.tenant).find(written.code)
    language = context.step.language(context.event)
    return _checked(promo, written, context.services.now(), context.services.timezone, language)


def rehearse_check_promo(step: RehearsedStep, written: CheckPromoAttributes) -> Ending:
    """Any code is valid."""
    name = step.prepared.seen.get("promo_name") or written.promo_name
    sample = Promo(written.code or SAMPLE, str(name), written.user_id, to_ms(step.now), id=NUMBER)
    return _checked(sample, structs.replace(written, promo_name=""), step.now, step.zone, "")


def _checked(promo: Promo | None, written: CheckPromoAttributes, now: datetime, zone: tzinfo, language: str) -> Ending:
    missing = "PROMO_NOT_FOUND", sentence("no_such_promo_code")
    fault = fault_of(promo, written.promo_name, written.user_id, to_ms(now), zone) if promo else missing
    if promo is None or fault:
        code, said = fault or missing
        return failed(code, said, {"promo_available": False, "reason": in_language(said, language or "en")})
    found = results_of(promo, zone)
    results = {**found, "promo_available": True, "promo_data": {**found, "user_id": promo.user_id or None}}
    return completed(results, from_person=["promo_data", *FROM_PERSON])


CHECK_PROMO = ActionType(
    name="check_promo",
    help="Completes if a promo code is valid for the person now; otherwise it fails, `code` is `PROMO_NOT_FOUND`,"
    " `PROMO_EXPIRED`, `PROMO_NOT_YET_VALID`, `PROMO_OF_OTHER_PERSON` or `PROMO_OF_OTHER_NAME`, and `error` says why."
    " Without `promo_code` the code is the text of the event.",
    attributes=CheckPromoAttributes,
    with_failure=("promo_available", "reason"),
    returns={
        "promo_available": "whether it is valid",
        "promo_data": "all that follows as one mapping, with `user_id`: `{promo_data.promo_name}`",
        "reason": "the same as `error`",
        **RETURNS,
    },
    execute=execute_check_promo,
    rehearse=rehearse_check_promo,
)


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


async def execute_modify_promo(context: Context, written: ModifyPromoAttributes) -> Ending:
    """Change what is written, once however often it is executed. Raises Refused."""
    promos, number = Promos(context.services.core.store, context.services.tenant), _number(written)
    promo = await promos.with_id(number)
    if promo is None:
        return failed("PROMO_NOT_FOUND", sentence("no_promo_id", number=number))
    if await step_results.recall(context) is None:
        promo = await promos.change(promo, written.changed(promo, context.person, context.services.now()))
        await step_results.remember(context, str(number))
    return completed(results_of(promo, context.services.timezone), from_person=FROM_PERSON)


def rehearse_modify_promo(step: RehearsedStep, written: ModifyPromoAttributes) -> Ending:
    """Any number has a promo code."""
    name = str(step.prepared.seen.get("promo_name") or "")
    sample = Promo(SAMPLE, name, written.user(step.person), to_ms(step.now), id=NUMBER)
    promo = written.changed(sample, step.person, step.now)
    return completed(results_of(promo, step.zone), from_person=FROM_PERSON)


def _number(written: ModifyPromoAttributes) -> int:
    if written.promo_id is None:
        raise Invalid("FIELD_INVALID", sentence("promo_id_missing_create_promo_check_promo"), "promo_id")
    return written.promo_id


MODIFY_PROMO = ActionType(
    name="modify_promo",
    help="Changes a promo code. What is not written stays.",
    attributes=ModifyPromoAttributes,
    returns=RETURNS,
    execute=execute_modify_promo,
    rehearse=rehearse_modify_promo,
)


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


async def execute_promo_management(context: Context, written: PromoManagementAttributes) -> Ending:
    """Execute an operation on promo codes. Raises Refused."""
    promos = Promos(context.services.core.store, context.services.tenant)
    most = min(max(written.limit or MOST_LISTED, 1), MOST_LISTED)
    if written.operation == "details":
        found = await _details(promos, written)
        if not found:
            return failed("PROMO_NOT_FOUND", sentence("no_such_promo_code"))
    else:
        found = await promos.newest(most + 1, written.matches)
    return _shown(listed(found, context.services.timezone, most) or written.empty_text)


def rehearse_promo_management(step: RehearsedStep, written: PromoManagementAttributes) -> Ending:
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


PROMO_MANAGEMENT = ActionType(
    name="promo_management",
    help="Lists promo codes, newest first, or shows one. It fails if there is no such code; an empty list is no"
    " failure.",
    attributes=PromoManagementAttributes,
    returns={
        "text": "what was found, in HTML; it replaces the text of the next `send`",
        "response_text": "the same as `text`",
    },
    execute=execute_promo_management,
    rehearse=rehearse_promo_management,
)
