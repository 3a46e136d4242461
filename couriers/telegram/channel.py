"""The record of the channel: Telegram over MTProto."""

from couriers.channel import Channel

CHANNEL = Channel(
    name="telegram",
    courier="couriers.telegram.sign_in",
    place=1,
    no_account=frozenset({"ADA_TELEGRAM_TIMEOUT"}),
    is_simulated=True,
    bot_place=4,
)
