"""The page on which a recipient answers by a link, in Russian or English. Everything from outside is escaped. Pure.

Called by `delivery.api.answer_page.answering`.
"""

from collections.abc import Mapping
from datetime import tzinfo
from html import escape
from string import Template

from core.answers.links import LinkedQuestion
from core.errors import Refused
from core.model.clock import from_ms
from core.model.people import id_text
from core.model.question import AnswerKind, AnswerState, GivenAnswer, Option
from core.updates.answer_words import result_text
from delivery.api.pages import content_security_policy, read_page

_PAGE = read_page(__package__, "answer_page.html")
POLICY = content_security_policy(_PAGE, form_action="'self'")

_WORDS: Mapping[str, Mapping[str, str]] = {
    "ru": {
        "title": "Ваш ответ",
        "as": "Вы отвечаете как <b>{name}</b> Если это не вы, закройте страницу.",
        "number": "получатель № {id}",
        "choose": "Выберите ответ",
        "answer": "Ответить",
        "change": "Изменить ответ",
        "until": "Ответить или изменить ответ можно до {time}.",
        "given": "Ваш ответ: {answer}",
        "confirmed": "Отмечено: {answer}",
        "closed": "Приём ответов закончен.",
        "final": "Изменить ответ нельзя.",
        "silent": "Ответа от вас не было.",
        "late": "Ответ пришёл после окончания приёма.",
    },
    "en": {
        "title": "Your answer",
        "as": "You answer as <b>{name}</b> If that is not you, close the page.",
        "number": "recipient {id}",
        "choose": "Choose an answer",
        "answer": "Answer",
        "change": "Change the answer",
        "until": "You can answer, and change the answer, until {time}.",
        "given": "Your answer: {answer}",
        "confirmed": "Noted: {answer}",
        "closed": "Answers are no longer accepted.",
        "final": "The answer cannot be changed.",
        "silent": "You have not answered.",
        "late": "The answer came after the closing.",
    },
}
_REFUSALS: Mapping[str, tuple[str, str]] = {
    "ANSWER_TOKEN_WRONG": (
        "Эта ссылка не действует. Откройте её из сообщения целиком.",
        "This link does not work. Open the whole link of the message.",
    ),
    "QUESTION_NOT_FOUND": ("Этот вопрос больше не хранится.", "This question is no longer kept."),
    "ANSWER_PERSON_DELETED": (
        "Данные этого получателя удалены, ответить по ссылке нельзя.",
        "The data of this recipient were deleted, so the link cannot be used.",
    ),
    "OPTION_UNKNOWN": (
        "Ответ не выбран. Вернитесь назад и выберите его.",
        "No answer was chosen. Go back and choose one.",
    ),
    "RATE_EXCEEDED": (
        "Слишком много запросов. Подождите минуту и обновите страницу.",
        "Too many requests. Wait a minute and load the page again.",
    ),
}
_OUTAGE = (
    "Сейчас ответ записать нельзя. Попробуйте через минуту.",
    "The answer cannot be stored now. Try again in a minute.",
)
_POST = '<form method="post">{}</form>'


def page_of(linked: LinkedQuestion, chosen: int, zone: tzinfo, given: GivenAnswer | None = None) -> str:
    """Return the page of a question. `chosen`: the number of the option of the link, from 1; `given`: what was just
    answered.
    """
    locale = "en" if linked.asked.question.locale == "en" else "ru"
    words = _WORDS[locale]
    parts = [
        f"<h1>{words['title']}</h1>",
        f'<p class="text">{escape(linked.asked.text)}</p>' if linked.asked.text.strip() else "",
        f'<p class="quiet">{words["as"].format(name=escape(_sentence_end(_name(linked, words))))}</p>',
        f'<p class="good" role="status">{escape(result_text(given))}</p>' if given else _state(linked, words),
        _form(linked, words, chosen) if linked.is_open else "",
        _ending(linked, words, zone),
    ]
    return _filled(locale, words["title"], parts)


def refused_page(refusal: Refused, languages: str) -> str:
    """Return the page that says why a link does not work. `languages`: Accept-Language."""
    return _sentence(_REFUSALS.get(refusal.code, _OUTAGE), languages)


def outage_page(languages: str) -> str:
    return _sentence(_OUTAGE, languages)


def _sentence(texts: tuple[str, str], languages: str) -> str:
    is_english = languages.strip().lower().startswith("en")
    locale, text = ("en", texts[1]) if is_english else ("ru", texts[0])
    return _filled(locale, _WORDS[locale]["title"], [f"<h1>{_WORDS[locale]['title']}</h1>", f"<p>{escape(text)}</p>"])


def _filled(locale: str, title: str, parts: list[str]) -> str:
    return Template(_PAGE).substitute(language=locale, title=title, body="\n".join(filter(None, parts)))


def _name(linked: LinkedQuestion, words: Mapping[str, str]) -> str:
    """Return the first word of the name and the initials of the others: a link can be forwarded."""
    recipient = linked.asked.recipient
    first, *others = (recipient.name or "").split() or [""]
    if not first:
        return words["number"].format(id=id_text(recipient.id))
    return " ".join([first, *(f"{one[0]}." for one in others[:2])])


def _sentence_end(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _state(linked: LinkedQuestion, words: Mapping[str, str]) -> str:
    row, question = linked.row, linked.asked.question
    if row is None:
        return f"<p>{words['silent']}</p>" if linked.is_closed else ""
    option = question.option(row.value)
    name = "confirmed" if question.kind is AnswerKind.CONFIRM else "given"
    late = f" {words['late']}" if row.state is AnswerState.LATE else ""
    return f'<p class="good">{words[name].format(answer=escape(option.text if option else row.value))}{late}</p>'


def _ending(linked: LinkedQuestion, words: Mapping[str, str], zone: tzinfo) -> str:
    """Return what else there is to know about the time."""
    if linked.is_closed:
        return f'<p class="quiet">{words["closed"]}</p>'
    if not linked.is_open:
        return f'<p class="quiet">{words["final"]}</p>'
    until = linked.asked.question.until
    return f'<p class="quiet">{words["until"].format(time=_time(until, zone))}</p>' if until else ""


def _time(ms: int, zone: tzinfo) -> str:
    return f"{from_ms(ms).astimezone(zone):%d.%m.%Y %H:%M}"


def _form(linked: LinkedQuestion, words: Mapping[str, str], chosen: int) -> str:
    question, row = linked.asked.question, linked.row
    if question.kind is AnswerKind.CONFIRM:
        if row is not None:
            return ""
        (option,) = question.options
        return _POST.format(f'<button name="option" value="{escape(option.key)}">{escape(option.text)}</button>')
    known = row.value if row else ""
    marked = question.options[chosen - 1].key if 0 < chosen <= len(question.options) else known
    options = "\n".join(_radio(one, is_marked=one.key == marked) for one in question.options)
    button = words["change"] if row else words["answer"]
    choice = f"<fieldset><legend>{words['choose']}</legend>\n{options}\n</fieldset>"
    return _POST.format(f"{choice}<button>{button}</button>")


def _radio(option: Option, *, is_marked: bool) -> str:
    value, checked = escape(option.key), " checked" if is_marked else ""
    button = f'<input type="radio" name="option" required value="{value}"{checked}>'
    return f"<label>{button}{escape(option.text)}</label>"
