"""Lists promo codes (C-87)."""

from scenarios.schema import ActionType
from scenarios.schema.promo import PROMO_FIELDS, PROMO_RETURNS

ACTION = ActionType(name="promo_management", help="Lists promo codes.", fields=PROMO_FIELDS, returns=PROMO_RETURNS)
