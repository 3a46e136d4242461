"""The fields that the actions for promo codes share."""

from scenarios.schema import types
from scenarios.schema.declaration import Field

NAME = Field("promo_name", types.TEXT, "What the code is for.")
CODE = Field("promo_code", types.TEXT, "The code, in capitals or not.")
USER = Field(
    "user_id", types.TEXT, 'The only person who may use it, by default that of the event; `any` or `""`: everybody.'
)
TARGET = Field("target_user_id", types.TEXT, "The same as `user_id`.")

EVERYBODY = ("", "any", "all", "null", "none", "0")
"""How authors write that a code is for everybody."""
