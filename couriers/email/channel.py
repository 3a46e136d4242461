"""The record of the channel: E-mail."""

from core.model.contacts.addresses import EMAIL_ADDRESS
from core.model.content import EVERY_FEATURE, Feature, KeyboardLimits
from couriers.channel import Channel

CHANNEL = Channel(
    name="email",
    titles={"en": "E-mail", "ru": "Почта"},
    shows=EVERY_FEATURE - {Feature.REPLY, Feature.REQUEST_CONTACT, Feature.EDIT, Feature.REMOVE},
    as_text=frozenset({Feature.REPLY}),
    keyboard=KeyboardLimits(
        inline_rows=100, inline_buttons=100, reply_rows=0, reply_buttons=0, width=100, label=256, data=0
    ),  # a mail has buttons with addresses only
    courier="couriers.email.courier",
    outcomes="couriers.email.outcomes",
    place=6,
    account="ADA_SMTP_URL",
    no_account=frozenset(
        {
            *(
                "ADA_EMAIL_LOCALE",
                "ADA_EMAIL_UNSUBSCRIBE",
                "ADA_EMAIL_BOUNCES",
                "ADA_EMAIL_CONNECTIONS",
                "ADA_EMAIL_TIMEOUT",
            ),
            *("ADA_EMAIL_FIRST_PAUSE", "ADA_EMAIL_ATTEMPTS", "ADA_EMAIL_MOST_FILES_MB"),
        }
    ),
    is_simulated=True,
    address=EMAIL_ADDRESS,
    samples={1: "anna@example.org", 5: "darya@example.org"},
    readers={
        "ADA_SMTP_URL": frozenset({"serve", "email", "scenarios"}),
        "ADA_INBOUND_MAIL_SECRET": frozenset({"serve"}),
        "ADA_IMAP_URL": frozenset({"serve"}),
    },
    limits_replies=True,
    takes_replies_by_mail=True,
)
