"""The page on which a recipient chooses what it receives, in Russian or English. Everything from outside is escaped.
Pure.

Called by `delivery.api.recipient_pages.preferences`.
"""

import json
from collections.abc import Mapping
from functools import cache
from html import escape

from core.admission.quiet_hours import QuietHours
from core.directory.preferences import LinkedPerson
from core.errors import Refused
from core.model.people import User
from delivery.api.pages import read_page
from delivery.api.recipient_pages.linked_page import POST, filled, is_english, short_name

_WORDS: Mapping[str, Mapping[str, str]] = {
    "ru": {
        "title": "Какие сообщения вам приходят",
        "as": "Настройки получателя <b>{name}</b> Если это не вы, закройте страницу.",
        "number": "№ {id}",
        "channels": "Присылать сообщения",
        "language": "Язык",
        "save": "Сохранить",
        "leave": "Не присылать мне ничего",
        "saved": "Сохранено.",
        "left": "Вы отписаны: где нет отметки, сообщения больше не придут. Передумаете – отметьте и сохраните.",
        "quiet": "С {begin} до {end} ({zone}) сообщения ждут и приходят потом. Срочное приходит всегда.",
        "always": "Ответы бота на ваши слова и коды для входа приходят всегда.",
        "none": "Ни одного способа связи не записано.",
        "blocked": "Сейчас вам ничего не отправляют: так решил отправитель.",
    },
    "en": {
        "title": "Which messages reach you",
        "as": "Settings of the recipient <b>{name}</b> If that is not you, close the page.",
        "number": "number {id}",
        "channels": "Send me messages over",
        "language": "Language",
        "save": "Save",
        "leave": "Send me nothing",
        "saved": "Saved.",
        "left": "You are unsubscribed where there is no tick. If you change your mind, tick it and save.",
        "quiet": "From {begin} to {end} ({zone}) messages wait and come later. Urgent ones always come.",
        "always": "Replies of the bot to you, and codes to sign in, always come.",
        "none": "No way to reach you is known.",
        "blocked": "Nothing is sent to you at present: the sender has decided so.",
    },
}
_LANGUAGES = {"ru": "Русский", "en": "English"}
_REFUSALS: Mapping[str, tuple[str, str]] = {
    "PREFERENCES_TOKEN_WRONG": (
        "Эта ссылка не действует. Откройте её из сообщения целиком.",
        "This link does not work. Open the whole link of the message.",
    ),
    "PREFERENCES_UNKNOWN": (
        "Этого адреса нет в списке отправителя, здесь нечего настроить. Не хотите сообщений – ответьте на сообщение.",
        "The sender's directory does not have this address, so there is nothing to choose. To get no more messages, "
        "reply to the message.",
    ),
    "RATE_EXCEEDED": (
        "Слишком много запросов. Подождите минуту и обновите страницу.",
        "Too many requests. Wait a minute and load the page again.",
    ),
}
_OUTAGE = (
    "Сейчас настройки недоступны. Попробуйте через минуту.",
    "The settings cannot be reached now. Try again in a minute.",
)


def page_of(linked: LinkedPerson, quiet: QuietHours | None, zone: str, done: str = "") -> str:
    """Return the page of a person. `quiet`: the quiet hours of its tenant, None if there are none. `done`: `saved` or
    `left`, what has just been done.
    """
    user = linked.user
    locale = "en" if user.locale == "en" else "ru"
    words = _WORDS[locale]
    parts = [
        f"<h1>{words['title']}</h1>",
        f'<p class="quiet">{words["as"].format(name=escape(short_name(user, words["number"])))}</p>',
        f'<p class="good" role="status">{words[done]}</p>' if done else "",
        f"<p>{words['blocked']}</p>" if user.blocked else "",
        _form(user, locale),
        _notes(words, quiet, zone),
    ]
    return filled(locale, words["title"], parts)


def refused_page(refusal: Refused, languages: str) -> str:
    """Return the page that says why a link does not work. `languages`: Accept-Language."""
    return _sentence(_REFUSALS.get(refusal.code, _OUTAGE), languages)


def outage_page(languages: str) -> str:
    return _sentence(_OUTAGE, languages)


def _sentence(texts: tuple[str, str], languages: str) -> str:
    locale, text = ("en", texts[1]) if is_english(languages) else ("ru", texts[0])
    title = _WORDS[locale]["title"]
    return filled(locale, title, [f"<h1>{title}</h1>", f"<p>{escape(text)}</p>"])


def _form(user: User, locale: str) -> str:
    words = _WORDS[locale]
    if not user.contacts:
        return f"<p>{words['none']}</p>"
    offered = "".join(f'<input type="hidden" name="offered" value="{escape(one)}">' for one in user.contacts)
    channels = "\n".join(_channel(user, one, locale) for one in user.contacts)
    languages = "\n".join(_language(one, is_chosen=one == locale) for one in _LANGUAGES)
    choice = (
        f"{offered}<fieldset><legend>{words['channels']}</legend>\n{channels}\n</fieldset>\n"
        f"<fieldset><legend>{words['language']}</legend>\n{languages}\n</fieldset>\n<button>{words['save']}</button>"
    )
    leave = f'{offered}<button class="plain">{words["leave"]}</button>'
    wants_some = set(user.contacts) - set(user.opt_out)
    return POST.format(choice) + (POST.format(leave) if wants_some else "")


def _channel(user: User, channel: str, locale: str) -> str:
    title = _channel_titles(locale).get(f"channel.{channel}", channel)
    addresses = ", ".join(map(_masked, user.contacts[channel]))
    checked = "" if channel in user.opt_out else " checked"
    button = f'<input type="checkbox" name="channel" value="{escape(channel)}"{checked}>'
    return f'<label>{button}<span>{escape(title)} <span class="quiet">{escape(addresses)}</span></span></label>'


def _language(locale: str, *, is_chosen: bool) -> str:
    checked = " checked" if is_chosen else ""
    button = f'<input type="radio" name="locale" value="{locale}"{checked}>'
    return f'<label lang="{locale}">{button}{_LANGUAGES[locale]}</label>'


def _masked(address: str) -> str:
    """Return what a person recognises of its address: a link can be forwarded."""
    name, at, domain = address.rpartition("@")
    return f"{name[:2]}…@{domain}" if at and name else f"…{address[-4:]}"


def _notes(words: Mapping[str, str], quiet: QuietHours | None, zone: str) -> str:
    hours = words["quiet"].format(begin=f"{quiet.begin:%H:%M}", end=f"{quiet.end:%H:%M}", zone=zone) if quiet else ""
    return "".join(f'<p class="quiet">{escape(one)}</p>' for one in (hours, words["always"]) if one)


@cache
def _channel_titles(locale: str) -> Mapping[str, str]:
    """Return the words of the console, among them `channel.<name>`."""
    words: Mapping[str, str] = json.loads(read_page("delivery.console", f"static/words/{locale}.json"))
    return words
