"""The record of the channel: SMS."""

from pathlib import Path

from core.model.contacts.addresses import PHONE_NUMBER
from core.model.content import EVERY_FEATURE
from couriers.channel import Callback, Channel, Receiving, ReportCallback

CHANNEL = Channel(
    name="sms",
    courier="couriers.sms.courier",
    outcomes="couriers.sms.outcomes",
    place=4,
    titles={"en": "SMS"},
    shows=frozenset(),
    as_text=EVERY_FEATURE,
    no_account=frozenset(
        {
            *("ADA_SMS_FROM", "ADA_SMS_CALLBACK_URL", "ADA_SMS_MOST_PARTS", "ADA_SMS_PRICE"),
            *("ADA_SMS_TIMEOUT", "ADA_SMS_LOW_BALANCE"),
        }
    ),
    of_installation=frozenset({"ADA_SMS_PROFILE"}),
    files=frozenset({"ADA_SMS_PROFILE"}),
    account_settings=("ADA_SMS_URL", "ADA_SMS_USERNAME", "ADA_SMS_PASSWORD", "ADA_SMS_FROM"),
    is_simulated=True,
    api_address="ADA_SMS_CALLBACK_URL",
    problems={"PROFILE_NOT_SET_UP": 404, "REPORT_MALFORMED": 400},
    sentences=Path(__file__).with_name("sentences.json"),
    address=PHONE_NUMBER,
    readers={"ADA_INBOUND_SMS_SECRET": frozenset({"serve", "sandbox", "sms"})},
    bot_place=5,
    is_known_at_start=True,
    in_sms=True,
    column_names=(
        "телефон",
        "номер телефона",
        "мобильный телефон",
        "мобильный",
        "тел",
        "сотовый",
        "phone",
        "mobile",
        "mobile phone",
    ),
    samples={1: "+79990000001", 2: "+79990000002", 4: "+79990000004"},
    limits_replies=True,
    receiving=Receiving(
        process="sms",
        events="couriers.sms.inbound",
        source="gateway",
        numbers=True,
        callback=Callback(
            path="/v1/inbound/sms",
            secret="ADA_INBOUND_SMS_SECRET",
            title="An SMS that a gateway has received",
            module="couriers.sms.inbound",
            is_form=True,
        ),
        needs=frozenset({"ADA_INBOUND_SMS_SECRET"}),
    ),
    reports=(
        ReportCallback("A delivery report of an SMS gateway", "couriers.sms.reports"),
        ReportCallback(
            title="A delivery report of an SMS provider",
            module="couriers.sms.profile",
            secret="ADA_INBOUND_SMS_SECRET",
            profile="ADA_SMS_PROFILE",
            default_profile="kannel",
        ),
    ),
)
