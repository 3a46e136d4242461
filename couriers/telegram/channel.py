"""The record of the channel: Telegram over MTProto."""

from core.model.contacts.addresses import ACCOUNT
from core.model.content import EVERY_FEATURE, Feature, KeyboardLimits
from couriers.channel import Channel

KEYBOARD = KeyboardLimits(
    inline_rows=100,
    inline_buttons=100,
    reply_rows=100,
    reply_buttons=300,
    width=100,
    label=256,
    data=2**16,
    data_bytes=64,
)
"""Of both channels of Telegram. core.telegram.org/bots/api#inlinekeyboardbutton: callback_data has 64 bytes."""

CHANNEL = Channel(
    name="telegram",
    courier="couriers.telegram.sign_in",
    outcomes="couriers.telegram.outcomes",
    place=1,
    titles={"en": "Telegram"},
    shows=EVERY_FEATURE - {Feature.INLINE, Feature.REPLY, Feature.REQUEST_CONTACT},  # of an account; a bot shows all
    no_account=frozenset({"ADA_TELEGRAM_TIMEOUT"}),
    files=frozenset({"ADA_TELEGRAM_SERVER_KEY"}),
    account_settings=(
        *("ADA_TELEGRAM_API_ID", "ADA_TELEGRAM_API_HASH", "ADA_TELEGRAM_BOT_TOKEN", "ADA_TELEGRAM_SESSION"),
    ),
    is_simulated=True,
    address=ACCOUNT,
    bot_place=4,
    shares_bot_with="telegram-bot",
    is_known_at_start=True,
    column_names=("telegram", "телеграм", "телеграмм"),
    samples={1: "100001", 2: "100002"},
)
