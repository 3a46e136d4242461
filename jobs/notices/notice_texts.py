"""Texts for users about their jobs, in English and Russian. Pure."""

from collections.abc import Mapping

from core.jobs.notices import Notice, NoticeEvent
from core.jobs.record import zone_of
from core.model.clock import from_ms

DEFAULT_LOCALE = "ru"

_TEXTS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "failed": "Your job {kind} has failed and does not go on: {reason}",
        "keeps_failing": "Your job {kind} has failed again and again for a day. It goes on trying: {reason}",
        "sign_in_needed": "Your job {kind} waits for you: {reason}",
        "waits_for_user": "Your job {kind} waits for you: {reason}",
        "address": "Sign in here, within a day: {address}",
        "limit_reached": "Your job {kind} is paused until {until}: {reason}",
        "finished": "Your job {kind} has finished. {reason}",
    },
    "ru": {
        "failed": "Ваше задание {kind} прервано из-за ошибки: {reason}",
        "keeps_failing": "Ваше задание {kind} уже сутки прерывается из-за ошибки. Попытки продолжаются: {reason}",
        "sign_in_needed": "Ваше задание {kind} ждёт вас: {reason}",
        "waits_for_user": "Ваше задание {kind} ждёт вас: {reason}",
        "address": "Войдите здесь в течение дня: {address}",
        "limit_reached": "Ваше задание {kind} приостановлено до {until}: {reason}",
        "finished": "Ваше задание {kind} завершено. {reason}",
    },
}


def text_of(notice: Notice, locale: str, address: str = "") -> str:
    """Return the message in the language of a locale such as `en` or `en-GB`; Russian for all others, as the bots have
    it. `address`: where the user signs in, "" if it is not known.
    """
    texts = _TEXTS.get(locale.partition("-")[0].lower(), _TEXTS[DEFAULT_LOCALE])
    until = from_ms(notice.resumes_at).astimezone(zone_of(notice.timezone)) if notice.resumes_at else None
    values = {"kind": notice.kind, "reason": notice.reason, "until": f"{until:%d.%m.%Y %H:%M}" if until else "–"}
    text = texts[notice.event].format(**values).strip()
    if notice.event is NoticeEvent.SIGN_IN_NEEDED and address:
        text += "\n" + texts["address"].format(address=address)
    return text
