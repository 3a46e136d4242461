"""Attributes of an action about a promo code: its name, its person, its validity.

What an earlier action of the chain has returned is not this one's, so only what the author wrote counts.
"""

import re
from datetime import MAXYEAR, datetime, timedelta, tzinfo
from typing import Annotated

from core.model.clock import to_ms
from scenarios.bot.data import Data
from scenarios.placeholders.values import as_text
from scenarios.schema import Attributes, Own, Seen, conversion, types
from scenarios.schema.attributes import Duration, Flag, Moment, Text, TextOrEmpty
from scenarios.stores.promo import ALWAYS, Promo

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
    """Return a moment; a day counts to its end."""
    ends = conversion.moment(value, name, zone)
    is_day = _DAY.fullmatch(as_text(value).strip()) is not None
    return ends.astimezone(zone) + timedelta(days=1) if ends and is_day and ends.year < MAXYEAR else ends


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
