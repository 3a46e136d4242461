"""The fields that the actions for promo codes share."""

from scenarios.schema import types
from scenarios.schema.declaration import Field

PROMO_FIELDS = (
    Field("promo_name", types.TEXT, "What the code is for."),
    Field("promo_code", types.TEXT, "The code."),
    Field("user_id", types.WHOLE, "The person for whom it is valid; without it, everybody."),
    Field("started_at", types.DATE, "When it begins to be valid."),
    Field("expired_at", types.DATE, "When it stops being valid."),
    Field("salt", types.TEXT, "With it the same fields always give the same code."),
    Field("operation", types.TEXT, "What to do."),
)
PROMO_RETURNS = {"promo_code": "the code", "text": "what was found, readable"}
