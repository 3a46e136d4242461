"""The limits of Telegram's keyboards, for both channels of Telegram."""

from couriers.sending import Content, Feature, KeyboardLimits

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
"""core.telegram.org/bots/api#inlinekeyboardbutton: callback_data has 64 bytes."""


def keyboards_as_text(content: Content) -> frozenset[Feature]:
    """Return the buttons if a keyboard cannot have them."""
    return frozenset() if KEYBOARD.fits(content) else frozenset({Feature.INLINE, Feature.REPLY})
