"""Checks a promo code (C-87)."""

from scenarios.schema import ActionType
from scenarios.schema.promo import PROMO_FIELDS, PROMO_RETURNS

ACTION = ActionType(
    name="check_promo",
    help="Checks whether a promo code is valid for the person now.",
    fields=PROMO_FIELDS,
    returns=PROMO_RETURNS,
)
