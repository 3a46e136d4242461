"""The fields that the actions for promo codes share."""

from scenarios.schema import types
from scenarios.schema.declaration import Field

NAME = Field("promo_name", types.TEXT, "What the code is for.")
CODE = Field("promo_code", types.TEXT, "The code, in capitals or not.")
USER = Field(
    "user_id", types.TEXT, 'The only person who may use it, by default that of the event; `any` or `""`: all people.'
)
TARGET = Field("target_user_id", types.TEXT, "The same as `user_id`.")

STARTED = Field("started_at", types.DATE, "When it begins to be valid; without it, now.")
EXPIRED = Field("expired_at", types.DATE, "When it stops being valid; a day counts to its end. Without it, never.")
EXPIRE = Field("expire", types.DURATION, "How long it is valid, instead of `expired_at`.")
PERMANENT = Field("permanent", types.FLAG, "Valid from 2000 to 2999, instead of the dates.")

RETURNS = {
    "promo_id": "its number, for `modify_promo`",
    "promo_code": "the code",
    "promo_name": "what it is for",
    "target_user_id": "the only person who may use it; null: all people",
    "started_at": "when it begins to be valid",
    "expired_at": "when it stops being valid, if it ever does",
    "permanent": "whether it is permanent",
}

ALL_PEOPLE = ("", "any", "all", "null", "none", "0")
"""How authors write that a code is for all people."""
