"""The page on which a recipient answers by a link, in Russian or English. Everything from outside is escaped. Pure.

Called by `delivery.api.recipient_pages.answering`.
"""

from collections.abc import Mapping
from datetime import tzinfo
from html import escape

from core.answers.links import LinkedQuestion
from core.answers.values import MOST_CHARACTERS, answer_text, wanted
from core.errors import Refused
from core.model.clock import from_ms
from core.model.question import AnswerKind, AnswerState, GivenAnswer, Option, Question
from core.updates.answer_words import result_text
from delivery.api.recipient_pages.linked_page import POST, filled, is_english, short_name

_WORDS: Mapping[str, Mapping[str, str]] = {
    "ru": {
        "title": "Ваш ответ",
        "as": "Вы отвечаете как <b>{name}</b> Если это не вы, закройте страницу.",
        "number": "получатель № {id}",
        "choose": "Выберите ответ",
        "answer_label": "Ответ",
        "file_hint": "Файл до 20 МБ.",
        "answer": "Ответить",
        "change": "Изменить ответ",
        "until": "Ответить или изменить ответ можно до {time}.",
        "given": "Ваш ответ: {answer}",
        "confirmed": "Отмечено: {answer}",
        "closed": "Приём ответов закончен.",
        "final": "Изменить ответ нельзя.",
        "silent": "Ответа от вас не было.",
        "anonymous": "Опрос анонимный: кто как ответил, не хранится, и ответ нельзя изменить.",
        "anonymous_given": "Вы ответили.",
        "late": "Ответ пришёл после окончания приёма.",
        "FILE_EMPTY": "Файл пустой. Выберите другой.",
        "BODY_TOO_LARGE": "Файл слишком большой: можно до 20 МБ.",
        "FILES_FULL": "Места для файлов сейчас нет. Сообщите об этом отправителю.",
    },
    "en": {
        "title": "Your answer",
        "as": "You answer as <b>{name}</b> If that is not you, close the page.",
        "number": "recipient {id}",
        "choose": "Choose an answer",
        "answer_label": "Answer",
        "file_hint": "A file of at most 20 MB.",
        "answer": "Answer",
        "change": "Change the answer",
        "until": "You can answer, and change the answer, until {time}.",
        "given": "Your answer: {answer}",
        "confirmed": "Noted: {answer}",
        "closed": "Answers are no longer accepted.",
        "final": "The answer cannot be changed.",
        "silent": "You have not answered.",
        "anonymous": "This question is anonymous: who answered what is not stored, and an answer cannot be changed.",
        "anonymous_given": "You have answered.",
        "late": "The answer came after the closing.",
        "FILE_EMPTY": "The file is empty. Choose another one.",
        "BODY_TOO_LARGE": "The file is too large: at most 20 MB.",
        "FILES_FULL": "There is no room for files now. Please tell the sender.",
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
CORRECTED = frozenset({"ANSWER_MALFORMED", "FILE_EMPTY", "BODY_TOO_LARGE", "FILES_FULL"})
"""Refusals of an answer that are shown above the form, so that it can be corrected."""
_OUTAGE = (
    "Сейчас ответ записать нельзя. Попробуйте через минуту.",
    "The answer cannot be stored now. Try again in a minute.",
)


def page_of(
    linked: LinkedQuestion, chosen: int, zone: tzinfo, given: GivenAnswer | None = None, problem: str = ""
) -> str:
    """Return the page of a question. `chosen`: the number of the option of the link, from 1; `given`: what was just
    answered; `problem`: why it was not, one of `CORRECTED`.
    """
    locale = "en" if linked.asked.question.locale == "en" else "ru"
    words = _WORDS[locale]
    name = escape(short_name(linked.asked.recipient, words["number"]))
    parts = [
        f"<h1>{words['title']}</h1>",
        f'<p class="text">{escape(linked.asked.text)}</p>' if linked.asked.text.strip() else "",
        f'<p class="quiet">{words["as"].format(name=name)}</p>',
        f'<p class="good" role="status">{escape(result_text(given))}</p>' if given else _state(linked, words),
        f'<p class="bad" role="alert">{escape(_problem(linked, words, problem))}</p>' if problem else "",
        _form(linked, words, chosen) if linked.is_open else "",
        _ending(linked, words, zone),
        f'<p class="quiet">{words["anonymous"]}</p>' if linked.asked.question.is_anonymous else "",
    ]
    return filled(locale, words["title"], parts)


def _problem(linked: LinkedQuestion, words: Mapping[str, str], problem: str) -> str:
    return words.get(problem) or wanted(linked.asked.question)


def refused_page(refusal: Refused, languages: str) -> str:
    """Return the page that says why a link does not work. `languages`: Accept-Language."""
    return _sentence(_REFUSALS.get(refusal.code, _OUTAGE), languages)


def outage_page(languages: str) -> str:
    return _sentence(_OUTAGE, languages)


def _sentence(texts: tuple[str, str], languages: str) -> str:
    locale, text = ("en", texts[1]) if is_english(languages) else ("ru", texts[0])
    return filled(locale, _WORDS[locale]["title"], [f"<h1>{_WORDS[locale]['title']}</h1>", f"<p>{escape(text)}</p>"])


def _state(linked: LinkedQuestion, words: Mapping[str, str]) -> str:
    row, question = linked.row, linked.asked.question
    if row is None:
        return f"<p>{words['silent']}</p>" if linked.is_closed else ""
    if question.is_anonymous:
        return f'<p class="good">{words["anonymous_given"]}</p>'
    name = "confirmed" if question.kind is AnswerKind.CONFIRM else "given"
    late = f" {words['late']}" if row.state is AnswerState.LATE else ""
    return f'<p class="good">{words[name].format(answer=escape(answer_text(question, row)))}{late}</p>'


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
        return POST.format(f'<button name="option" value="{escape(option.key)}">{escape(option.text)}</button>')
    button = words["change"] if row else words["answer"]
    known = row.value if row else ""
    if not question.has_options:
        return _written_form(question, (known or row.text) if row else "", words, button)
    marked = question.options[chosen - 1].key if 0 < chosen <= len(question.options) else known
    options = "\n".join(_radio(one, is_marked=one.key == marked) for one in question.options)
    choice = f"<fieldset><legend>{words['choose']}</legend>\n{options}\n</fieldset>"
    return POST.format(f"{choice}<button>{button}</button>")


def _written_form(question: Question, known: str, words: Mapping[str, str], button: str) -> str:
    """Return the form of a text, number, date or file, with what was answered before."""
    label, known = escape(words["answer_label"]), escape(known)
    common = 'id="answer" name="option" required aria-describedby="wanted"'
    match question.kind:
        case AnswerKind.TEXT:
            field = f'<textarea {common} rows="4" maxlength="{MOST_CHARACTERS}">{known}</textarea>'
        case AnswerKind.NUMBER:
            field = f'<input {common} class="wide" inputmode="decimal" maxlength="20" value="{known}">'
        case AnswerKind.DATE:
            field = f'<input {common} class="wide" type="date" value="{known}">'
        case _:
            field = f'<input {common} class="wide" type="file">'
    hint = escape(words["file_hint"] if question.kind is AnswerKind.FILE else wanted(question))
    lines = f'<p><label class="plain" for="answer">{label}</label>{field}</p><p class="quiet" id="wanted">{hint}</p>'
    form = '<form method="post" enctype="multipart/form-data">{}</form>' if question.kind is AnswerKind.FILE else POST
    return form.format(f"{lines}<button>{button}</button>")


def _radio(option: Option, *, is_marked: bool) -> str:
    value, checked = escape(option.key), " checked" if is_marked else ""
    button = f'<input type="radio" name="option" required value="{value}"{checked}>'
    return f"<label>{button}{escape(option.text)}</label>"
