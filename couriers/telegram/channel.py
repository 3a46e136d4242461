"""The record of the channel: Telegram over MTProto."""

from core.model.contacts.addresses import ACCOUNT
from core.model.content import EVERY_FEATURE, Feature
from couriers.channel import Channel

CHANNEL = Channel(
    name="telegram",
    courier="couriers.telegram.sign_in",
    outcomes="couriers.telegram.outcomes",
    place=1,
    titles={"en": "Telegram"},
    shows=EVERY_FEATURE - {Feature.INLINE, Feature.REPLY, Feature.REQUEST_CONTACT},  # of an account; a bot shows all
    no_account=frozenset({"ADA_TELEGRAM_TIMEOUT"}),
    account_settings=(
        *("ADA_TELEGRAM_API_ID", "ADA_TELEGRAM_API_HASH", "ADA_TELEGRAM_BOT_TOKEN", "ADA_TELEGRAM_SESSION"),
    ),
    is_simulated=True,
    address=ACCOUNT,
    bot_place=4,
    is_known_at_start=True,
    column_names=("telegram", "телеграм", "телеграмм"),
    samples={1: "100001", 2: "100002"},
)
