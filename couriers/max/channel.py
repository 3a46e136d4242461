"""The record of the channel: MAX."""

from couriers.channel import Channel, Receiving

CHANNEL = Channel(
    name="max",
    courier="couriers.max.courier",
    place=3,
    account="ADA_MAX_TOKEN",
    no_account=frozenset({"ADA_MAX_CA", "ADA_MAX_TIMEOUT", "ADA_MAX_MOST_FILE_MB"}),
    of_installation=frozenset({"ADA_MAX_WEBHOOK_URL", "ADA_MAX_WEBHOOK_SECRET"}),
    is_per_bot=True,
    is_simulated=True,
    receiving=Receiving(  # without a webhook it polls
        process="max",
        reads_section=True,
        modules=("bots.max.calls", "bots.max.long_poll", "bots.max.sending", "bots.max.webhook"),
    ),
)
