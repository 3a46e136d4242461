"""The calendar of a person: until when its open questions can be answered, and what it has signed up for (RFC 5545).

A calendar program reads it by an address whose last part is the secret of a personal key with the scope `calendar`.
"""

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from core.answers.values import answer_text
from core.deliveries.of_person import PersonDelivery
from core.errors import NotFound
from core.model.clock import from_ms
from core.model.people import User, id_text
from core.model.question import AnswerState, RecipientAnswer
from core.model.states import DeliveryState
from core.model.text.text_marks import plain_text
from core.sentence import language_of, say
from delivery.http.context import ApiContext
from delivery.http.rate_limit import RateLimiter
from delivery.http.route import OpenRoute, Routes

PATH = "/v1/calendar/{secret}"
MOST_EVENTS = 200
CALENDAR = "text/calendar; charset=utf-8"
_RATE, _BURST = 0.1, 20
"""Reads of one calendar, per second and at once: it looks through all deliveries of the tenant."""
_OCTETS = 74
"""Of a line before the first fold, as RFC 5545 allows, section 3.1."""
_SUMMARY = 100
_HEADERS = {
    hdrs.CONTENT_TYPE: CALENDAR,
    hdrs.CACHE_CONTROL: "private, max-age=300",
    "Referrer-Policy": "no-referrer",
    "X-Robots-Tag": "noindex",
    hdrs.X_CONTENT_TYPE_OPTIONS: "nosniff",
}


def feed(context: ApiContext) -> Handler:
    """Return the handler of a calendar."""
    of_client, of_calendar = RateLimiter(rate=2, burst=60), RateLimiter(_RATE, _BURST)

    async def handle(request: web.Request) -> web.Response:
        services, now = context.services, time.monotonic()
        of_client.check(request.remote or "", now)
        secret = request.match_info["secret"].removesuffix(".ics")
        identity = await services.sessions.find_personal_key(secret, for_calendar=True)
        if identity is None or identity.person is None:
            raise NotFound("CALENDAR_NOT_FOUND", "There is no such calendar, or its key has ended.")
        of_calendar.check(identity.key.id, now)
        person = identity.person
        found, _ = await services.core.deliveries.of_person.page(
            identity.tenant, id_text(person.id), None, MOST_EVENTS, lambda _: True
        )
        return web.Response(body=calendar_of(person, found).encode(), headers=_HEADERS)

    return handle


def calendar_of(person: User, deliveries: Sequence[PersonDelivery]) -> str:
    """Return the calendar. Each question with an end that was put to the person is an event at that end."""
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Ada//Calendar//EN", "CALSCALE:GREGORIAN"]
    lines += [
        f"X-WR-CALNAME:{escaped(say('calendar_name', language_of(person.locale)))}",
        "REFRESH-INTERVAL;VALUE=DURATION:PT1H",
    ]
    for one in deliveries:
        lines += _event(person, one)
    lines.append("END:VCALENDAR")
    return "".join(f"{folded}\r\n" for line in lines for folded in folded_line(line))


def _event(person: User, one: PersonDelivery) -> Iterator[str]:
    history, answer = one.history, one.recipient.answer
    question, released = history.question, history.released_at
    if question is None or not question.until or released is None or history.state is DeliveryState.CANCELLED:
        return
    if answer is None or answer.state not in (AnswerState.OPEN, AnswerState.ANSWERED) or _is_over(one, answer):
        return
    text = _text(person, one)
    yield "BEGIN:VEVENT"
    yield f"UID:{sha256(history.key.id.encode()).hexdigest()[:32]}@ada"
    yield f"DTSTAMP:{_stamp(answer.row.answered_at if answer.row else released)}"
    yield f"DTSTART:{_stamp(from_ms(question.until))}"
    yield f"SUMMARY:{escaped(_summary(person, one, answer, text))}"
    yield f"DESCRIPTION:{escaped(text)}"
    yield "TRANSP:TRANSPARENT"
    yield "END:VEVENT"


def _is_over(one: PersonDelivery, answer: RecipientAnswer) -> bool:
    """Return whether the question was closed early, and the person has not answered."""
    totals = one.history.answers
    return bool(totals and totals.closed_at) and answer.state is AnswerState.OPEN


def _summary(person: User, one: PersonDelivery, answer: RecipientAnswer, text: str) -> str:
    locale, question, row = language_of(person.locale), one.history.question, answer.row
    first = " ".join(text.split())[:_SUMMARY]
    if row is None:
        return say("calendar_open", locale, text=first)
    if question is None or question.is_anonymous:
        return say("calendar_answered_anonymously", locale, text=first)
    name = "calendar_waiting" if row.waiting else "calendar_answered"
    return say(name, locale, answer=answer_text(question, row), text=first)


def _text(person: User, one: PersonDelivery) -> str:
    """Return the text that the person has got, without marks."""
    history = one.history
    text = one.recipient.text or history.texts.get(person.locale) or history.text
    return plain_text(text, history.content.parse_mode) if history.content else text


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")


def escaped(text: str) -> str:
    """Return a text as a value: nothing in it ends the line or begins another property."""
    for given, written in (("\\", "\\\\"), (";", "\\;"), (",", "\\,")):
        text = text.replace(given, written)
    return "\\n".join("".join(one for one in line if one.isprintable()) for line in text.splitlines())


def folded_line(line: str) -> Iterator[str]:
    """Yield a line in pieces of at most 75 octets, each but the first after a space. No character is cut."""
    piece, size = "", 0
    for character in line:
        octets = len(character.encode(errors="replace"))
        if size + octets > _OCTETS:
            yield piece
            piece, size = " ", 1
        piece, size = piece + character, size + octets
    yield piece


ROUTES: Routes = (
    OpenRoute("GET", PATH, "The calendar of a person: deadlines of its questions, and what it has signed up for", feed,
              CALENDAR),
)  # fmt: skip
