"""The page docs/answers.md: which answer of a provider concerns one recipient, and which the account (D-53).

It calls the couriers' own functions.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta

import aiohttp
from telethon.errors.rpcerrorlist import rpc_errors_dict

from couriers.email import Phase
from couriers.email import outcomes as email
from couriers.email.errors import answered, unanswered
from couriers.max import outcomes as max_
from couriers.max.client import Answer
from couriers.sending import Deferred, Halted, Outcome, Reason, Rejected, Scope, Sent, Split, Unknown
from couriers.sms import outcomes as sms
from couriers.sms.profile import Rule, load_profile, own_profiles
from couriers.telegram import outcomes as telegram
from couriers.telegram_bot import outcomes as telegram_bot
from couriers.telegram_bot.client import BotClient, NoAnswer
from couriers.telegram_bot.library import exceptions, methods
from couriers.vk import outcomes as vk
from couriers.vk.client import AMBIGUOUS, TOKEN_REFUSED

Row = tuple[str, str, Outcome]
"""Step, answer, outcome."""

HEAD = ("step", "answer", "concerns", "what follows")
INTRODUCTION = """# Which answer concerns whom

An answer concerns the account only where that is certain: all its messages wait then, or an operator must act. Every
other answer, silence and a cut connection concern one recipient, and the others go on (D-53):
tests/couriers/test_one_recipient_delays_no_other.py.

"Counts" means that the attempt is one of those after which the message ends. Without a wait the pauses double. A wait
that the provider named does not count, unless this message has triggered a wait of the account. A server that cannot
be reached is not the fault of a recipient: the attempt counts only if other messages got through meanwhile. So
nothing ends while the server is down for everybody, and a recipient whose attempts bring the connection down ends
while others are sent.
"""


def tables() -> Iterator[tuple[str, list[tuple[str, ...]]]]:
    """Emit the title and the rows of each channel."""
    channels = [
        ("E-mail (SMTP)", _email()),
        ("Telegram (MTProto)", _telegram()),
        ("Telegram (Bot API)", _telegram_bot()),
        ("VK", _vk()),
        ("MAX", _max()),
        ("SMS (Kannel)", _sms()),
        *((f"SMS ({name})", _profile(name)) for name in own_profiles()),
    ]
    for title, rows in channels:
        yield title, [(step, answer, concerns(outcome), follows(outcome)) for step, answer, outcome in rows]


def concerns(outcome: Outcome) -> str:
    match outcome:
        case Halted():
            return "**account**"
        case Deferred(scope=Scope.ACCOUNT | Scope.METHOD, after=timedelta()):
            return "**account**"
        case Deferred(scope=Scope.CHAT):
            return "chat"
        case Split():
            return "one of the batch"
    return "recipient"


def follows(outcome: Outcome) -> str:
    match outcome:
        case Sent():
            return "sent"
        case Halted():
            return "stopped until an operator acts; the messages stay queued"
        case Rejected(reason):
            return f"failed ({reason})"
        case Deferred(reason, None):
            return f"again, counts; then failed ({reason})"
        case Deferred(reason, timedelta() as after):
            return f"again after {after.total_seconds():g} s{', counts' if outcome.is_guess else ''} ({reason})"
        case Split():
            return "the batch is sent in halves"
    return "it may have been sent: again under the same id where the provider recognises it, else unknown (answer_lost)"


def _email() -> Iterator[Row]:
    steps = {
        Phase.CONNECT: "connect, greeting, EHLO, STARTTLS",
        Phase.SIGN_IN: "AUTH",
        Phase.SENDER: "MAIL",
        Phase.RECIPIENT: "RCPT; MAIL with SMTPUTF8, if refused",
        Phase.CONTENT: "DATA, after the dot",
    }
    for phase, step in steps.items():
        yield step, "cut", email.outcome_of(unanswered(phase, 0, ""))
        yield step, "silence", email.outcome_of(unanswered(phase, 0, "", is_silent=True))
        for status, text in (
            (421, ""),
            (450, ""),
            (450, "4.7.28"),
            (530, ""),
            (550, ""),
            (550, "5.1.1"),
            (550, "5.4.5"),
        ):
            yield step, f"{status} {text}".rstrip(), email.outcome_of(answered(phase, status, text))


def _telegram() -> Iterator[Row]:
    yield "connect", "cut, silence", telegram.connect_outcome(ConnectionError())
    yield "look-up", "cut, silence", telegram.lookup_outcome(ConnectionError())
    yield "send", "cut, silence, 500", telegram.send_outcome(ConnectionError())
    for name, scope in telegram.THROTTLES.items():
        yield "send", name.replace("_n", "_1"), Deferred(Reason.THROTTLED, timedelta(seconds=1), scope)
    for name in sorted(telegram.FINAL | dict.fromkeys(telegram.ACCOUNT_UNUSABLE)):
        if kind := rpc_errors_dict.get(name):
            yield "send", name, telegram.send_outcome(kind(request=None))


def _telegram_bot() -> Iterator[Row]:
    refused, cut = aiohttp.ConnectionTimeoutError(), aiohttp.ServerDisconnectedError()
    yield "connect", "refused, silence", telegram_bot.outcome_of(NoAnswer(methods.GetMe(), refused), "1")
    yield "send", "cut, silence", telegram_bot.outcome_of(NoAnswer(methods.GetMe(), cut), "1")
    yield "send", "no JSON", telegram_bot.outcome_of(_bot_api_error(200, b""), "1")
    for status in (400, 401, 403, 404, 409, 413, 500, 502):
        yield "send", str(status), telegram_bot.outcome_of(_bot_api_error(status, b'{"ok": false}'), "1")
    throttled = _bot_api_error(429, b'{"ok": false, "parameters": {"retry_after": 1}}')
    yield "send to a person", "429, retry_after 1", telegram_bot.outcome_of(throttled, "1")
    yield "send to a group", "429, retry_after 1", telegram_bot.outcome_of(throttled, "-1")


def _bot_api_error(status: int, body: bytes) -> exceptions.AiogramError:
    try:
        result = BotClient("1:x").read(status, body)
    except exceptions.AiogramError as error:
        return error
    raise AssertionError(result)


def _vk() -> Iterator[Row]:
    yield "connect", "refused, silence", vk.outcome_of_error(aiohttp.ConnectionTimeoutError())
    yield "execute", "cut, silence, no JSON", vk.outcome_of_error(aiohttp.ServerDisconnectedError())
    codes = sorted({*vk.THROTTLES, *vk.FINAL, *vk.TOO_LARGE, *TOKEN_REFUSED, *AMBIGUOUS, 4711})
    for code in codes:
        answer = "any other error" if code == 4711 else f"error {code}"
        yield "execute, one entry", answer, vk.peer_outcome(code)
        yield "execute, one call of several", answer, vk.call_outcome(code, 2)
        yield "execute, as a whole", answer, vk.request_outcome(code, 2)


def _max() -> Iterator[Row]:
    yield "connect", "refused, silence", max_.outcome_of_error(aiohttp.ConnectionTimeoutError())
    yield "send", "cut, silence", max_.outcome_of_error(aiohttp.ServerDisconnectedError())
    for status in (302, 400, 401, 403, 404, 405, 413, 500, 503):
        yield "send", str(status), max_.outcome_of(Answer(status, {}))
    yield "send", "429, Retry-After 1", max_.outcome_of(Answer(429, {}, 1))
    for code in (*max_.FINAL, max_.NOT_READY, "verify.token", "any other code"):
        yield "send", code, max_.outcome_of(Answer(200, {"code": code, "message": ""}))


def _sms() -> Iterator[Row]:
    yield "connect", "refused, silence", sms.outcome_of_error(aiohttp.ConnectionTimeoutError())
    yield "sendsms", "cut, silence", sms.outcome_of_error(aiohttp.ServerDisconnectedError())
    for status in (200, 302, 400, 401, 402, 403, 404, 405, 408, 413, 422, 429, 500, 503):
        yield "sendsms", str(status), sms.outcome_of(status, "")
    for text in (*sms.REFUSALS, *sms.MISCONFIGURED):
        yield "sendsms", f"403 {text}", sms.outcome_of(403, text)


def _profile(name: str) -> Iterator[Row]:
    yield "connect", "refused, silence", sms.outcome_of_error(aiohttp.ConnectionTimeoutError())
    yield "send", "cut, silence, any other answer", Unknown()
    for rule in load_profile(name).answer.rules:
        yield "send", _answer(rule), _outcome(rule)


def _answer(rule: Rule) -> str:
    parts = [("HTTP", rule.http), ("code", rule.code)]
    return ", ".join([*(_values(what, values) for what, values in parts if values), *filter(None, [rule.contains])])


def _values(what: str, values: Sequence[int | str]) -> str:
    return f"{what} {', '.join(str(value) or 'none' for value in values)}"


def _outcome(rule: Rule) -> Outcome:
    match rule.then:
        case "sent":
            return Sent()
        case "failed":
            return Rejected(Reason(rule.reason))
        case "deferred":
            scope = Scope.ACCOUNT if rule.account else Scope.RECIPIENT
            wait = timedelta(seconds=rule.wait)
            return Deferred(Reason.THROTTLED, wait, scope, is_guess=not rule.account)
        case "stop":
            return Halted(rule.why)
    return Unknown()
