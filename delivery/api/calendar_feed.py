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
from core.deliveries.of_person import DeliveriesOfPerson, PersonDelivery
from core.errors import NotFound
from core.model.clock import from_ms
from core.model.people import User, id_text
from core.model.question import AnswerState, RecipientAnswer
from core.model.states import DeliveryState
from core.model.text.text_marks import plain_text
from core.sentence import language_of, language_of_text, say
from core.sessions.sessions import StoredSession
from delivery.http.context import ApiContext
from delivery.http.rate_limit import RateLimiter
from delivery.http.route import OpenRoute, Routes

PATH = "/v1/calendar/{secret}"
MOST_EVENTS = 200
_MOST_PAGES = 10
"""Of the deliveries to a person that are looked through, each of at most 200 to it among 5,000 of the tenant."""
CALENDAR = "text/calendar; charset=utf-8"
_RATE, _BURST = 0.1, 20
"""Reads of one calendar, per second and at once: it reads all deliveries of the tenant."""
_OCTETS = 74
"""Of a line before the first fold, as RFC 5545 allows, section 3.1."""
_SUMMARY = 100
_SHOWN = frozenset({AnswerState.OPEN, AnswerState.ANSWERED, AnswerState.LATE, AnswerState.SILENT})
"""States of a question that has reached the person. SILENT: it is closed, so that the event is cancelled."""
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
        secret = request.match_info["secret"].removesuffix(".ics")
        identity = await services.sessions.find_personal_key(secret, for_calendar=True)
        if identity is None or identity.person is None:
            of_client.check(request.remote or "", now)  # only who guesses: behind a proxy all have one address
            raise _not_found()
        of_calendar.check(identity.key.id, now)
        stored = await services.sessions.stored(secret)
        if stored is None or stored.personal_key is None:
            raise _not_found()
        found = await questions_of(services.core.deliveries.of_person, identity.tenant, identity.person)
        end = stored.personal_key.expires_at
        calendar = calendar_of(identity.person, found, [_event_of_end(identity.person, stored, end)])
        return web.Response(body=calendar.encode(), headers=_HEADERS)

    return handle


def _not_found() -> NotFound:
    return NotFound("CALENDAR_NOT_FOUND", "There is no such calendar, or its key has ended.")


async def questions_of(deliveries: DeliveriesOfPerson, tenant: str, person: User) -> list[PersonDelivery]:
    """Return the newest deliveries to a person whose question has an end. A page has some without a question, too."""
    found: list[PersonDelivery] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page, cursor = await deliveries.page(tenant, id_text(person.id), cursor, MOST_EVENTS, lambda _: True)
        found += [one for one in page if one.history.question and one.history.question.until]
        if cursor is None or len(found) >= MOST_EVENTS:
            break
    return found[:MOST_EVENTS]


def calendar_of(person: User, deliveries: Sequence[PersonDelivery], more: Sequence[Sequence[str]]) -> str:
    """Return the calendar. Each question with an end that was put to the person is an event at that end. `more`:
    the lines of further events.
    """
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Ada//Calendar//EN", "CALSCALE:GREGORIAN"]
    lines += [
        f"X-WR-CALNAME:{escaped(say('calendar_name', person.locale))}",
        "REFRESH-INTERVAL;VALUE=DURATION:PT1H",
    ]
    for event in (*(_event(person, one) for one in deliveries), *more):
        lines += event
    lines.append("END:VCALENDAR")
    return "".join(f"{folded}\r\n" for line in lines for folded in folded_line(line))


def _event_of_end(person: User, stored: StoredSession, end: datetime) -> list[str]:
    """Return the event at which the address ends: the calendar program would only stop to show anything new."""
    text = escaped(say("calendar_ends", person.locale))
    uid = sha256(f"{stored.tenant} {stored.begun_at} {end}".encode()).hexdigest()[:32]
    return _lines(uid, stored.begun_at, end, 0, [f"SUMMARY:{text}"])


def _event(person: User, one: PersonDelivery) -> list[str]:
    """Return the event of a question that has reached the person; none for others. `SEQUENCE`: the version of the
    history, so that a program takes over a later end or an answer.
    """
    history, answer = one.history, one.recipient.answer
    question, released = history.question, history.released_at
    if question is None or released is None or answer is None or answer.state not in _SHOWN:
        return []
    text, is_over = _text(person, one), answer.state is AnswerState.SILENT
    more = [
        f"SUMMARY:{escaped(_summary(person, one, answer, text))}",
        f"DESCRIPTION:{escaped(text)}",
        *(["STATUS:CANCELLED"] if is_over or history.state is DeliveryState.CANCELLED else []),
    ]
    uid = sha256(history.key.id.encode()).hexdigest()[:32]
    return _lines(
        uid, answer.row.answered_at if answer.row else released, from_ms(question.until), history.version, more
    )


def _lines(uid: str, stamp: datetime, start: datetime, sequence: int, more: Sequence[str]) -> list[str]:
    """Return the lines of an event. `uid`: 32 letters and digits, the same in each calendar."""
    return [
        "BEGIN:VEVENT",
        f"UID:{uid}@ada",
        f"DTSTAMP:{_stamp(stamp)}",
        f"DTSTART:{_stamp(start)}",
        f"SEQUENCE:{sequence}",
        *more,
        "TRANSP:TRANSPARENT",
        "END:VEVENT",
    ]


def _summary(person: User, one: PersonDelivery, answer: RecipientAnswer, text: str) -> str:
    locale, question, row = language_of(person.locale, language_of_text(text)), one.history.question, answer.row
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
    text = one.recipient.text or history.texts.get(person.locale or "") or history.text
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
