"""The record of the channel: VK."""

from couriers.channel import Channel, Receiving

CHANNEL = Channel(
    name="vk",
    courier="couriers.vk.courier",
    place=2,
    account="ADA_VK_TOKEN",
    no_account=frozenset({"ADA_VK_LONG_POLL", "ADA_VK_TIMEOUT", "ADA_VK_MOST_FILE_MB"}),
    is_per_bot=True,
    is_simulated=True,
    receiving=Receiving(
        process="vk",
        needs=frozenset({"ADA_INBOUND_VK_SECRET", "ADA_VK_LONG_POLL"}),
        reads_section=True,
        modules=("bots.vk.calls", "bots.vk.long_poll"),
    ),
)
