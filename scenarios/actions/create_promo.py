"""Makes a promo code (C-87)."""

from scenarios.schema import ActionType
from scenarios.schema.promo import PROMO_FIELDS, PROMO_RETURNS

ACTION = ActionType(name="create_promo", help="Makes a promo code.", fields=PROMO_FIELDS, returns=PROMO_RETURNS)
