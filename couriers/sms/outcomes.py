"""Every answer of Kannel's sendsms, with the outcome it means for the message.

Kannel does not detect repeats. So an answer that leaves open whether the message was accepted is `Unknown`; a message
is known not to be sent only if the connection was never made or Kannel refused it. Success is HTTP 202 together with
Kannel's own text; HTTP 200 is not success.
Source: Kannel user guide 1.4.5, "SMS push reply codes"; gw/smsbox.c (smsbox_req_sendsms, delayed_http_reply).
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta

import aiohttp

from couriers.sending import AnswerRow, Deferred, Halted, Outcome, Reason, Rejected, Scope, Sent, Unknown, sentence
from couriers.sms.profile import Rule, load_profile, own_profiles

RECONNECT_AFTER = timedelta(seconds=5)  # given explicitly, so that an outage does not use up the attempts
MINUTE = timedelta(minutes=1)

ACCEPTED = ("0: Accepted for delivery", "3: Queued for later delivery", "Sent.")
TRY_LATER = "Temporal failure, try again later."
REFUSALS = {
    "Number(s) has/have been denied": Reason.RECIPIENT_UNREACHABLE,
    "Missing receiver number": Reason.RECIPIENT_UNREACHABLE,
    "Empty receiver number": Reason.RECIPIENT_UNREACHABLE,
    "Not routable": Reason.RECIPIENT_UNREACHABLE,
    "Charset or body misformed": Reason.CONTENT_REFUSED,
    "Empty text not allowed": Reason.CONTENT_REFUSED,
}
# Mistakes in the configuration: no message gets through before the operator corrects them.
MISCONFIGURED = {
    "Authorization failed": sentence("remedy_check", setting="ADA_SMS_USERNAME, ADA_SMS_PASSWORD"),
    "Sender missing": sentence("remedy_set", setting="ADA_SMS_FROM"),
    "DLR-URL field misformed": sentence("remedy_check", setting="ADA_SMS_CALLBACK_URL"),
}
_CHECK_URL = sentence("remedy_check", setting="ADA_SMS_URL")
# Of any request, whatever its number and text: the account, the path or the method.
WRONG_ADDRESS = frozenset({401, 402, 404, 405, 407})


def outcome_of(status: int, body: str) -> Outcome:
    """Return the outcome that an HTTP answer means.

    The detail quotes the body only if it is known here: other servers repeat the URL, which holds the password.
    """
    text = next((known for known in (*ACCEPTED, *REFUSALS, *MISCONFIGURED, TRY_LATER) if body.startswith(known)), "")
    detail = f"{status} {text}".rstrip()
    match status:
        case 202:
            return Sent() if text in ACCEPTED else Unknown(detail)
        case 503:
            return Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, detail)
        case 429:
            return Deferred(Reason.THROTTLED, MINUTE, Scope.ACCOUNT, detail)
        case 413 | 414:
            return Rejected(Reason.CONTENT_REFUSED, detail)
        case 408:
            return Unknown(detail)
        case _ if 300 <= status < 400 or status in WRONG_ADDRESS:
            return Halted(sentence("halt_gateway", answer=detail, remedy=_CHECK_URL))
        case _ if 400 <= status < 500:
            return _refused(status, text, detail)
    return Unknown(detail)


def _refused(status: int, text: str, detail: str) -> Outcome:
    """Return the outcome of a refusal. What Kannel never says comes from something in front of it, and may concern this
    number or text alone: it is tried again, and stops nobody (D-53).
    """
    if text in MISCONFIGURED:
        return Halted(sentence("halt_gateway", answer=detail, remedy=MISCONFIGURED[text]))
    if text not in REFUSALS and status == 403:
        return Deferred(Reason.ACCOUNT_STOPPED, None, Scope.RECIPIENT, detail)
    return Rejected(REFUSALS.get(text, Reason.RECIPIENT_UNREACHABLE), detail)


def outcome_of_error(error: Exception) -> Outcome:
    """Return the outcome of a failed connection. Only a connection that was never made has surely sent nothing."""
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return Deferred(Reason.PROVIDER_DOWN, RECONNECT_AFTER, Scope.ACCOUNT, type(error).__name__)
    return Unknown(type(error).__name__)


def answer_tables() -> dict[str, Iterable[AnswerRow]]:
    """Return what the page of answers shows: title → rows."""
    return {"SMS (Kannel)": _rows(), **{f"SMS ({name})": _rows_of_profile(name) for name in own_profiles()}}


def _rows() -> Iterator[AnswerRow]:
    yield "connect", "refused, silence", outcome_of_error(aiohttp.ConnectionTimeoutError())
    yield "sendsms", "cut, silence", outcome_of_error(aiohttp.ServerDisconnectedError())
    for status in (200, 302, 400, 401, 402, 403, 404, 405, 408, 413, 422, 429, 500, 503):
        yield "sendsms", str(status), outcome_of(status, "")
    for text in (*REFUSALS, *MISCONFIGURED):
        yield "sendsms", f"403 {text}", outcome_of(403, text)


def _rows_of_profile(name: str) -> Iterator[AnswerRow]:
    yield "connect", "refused, silence", outcome_of_error(aiohttp.ConnectionTimeoutError())
    yield "send", "cut, silence, any other answer", Unknown()
    for rule in load_profile(name).answer.rules:
        yield "send", _answer_of_rule(rule), _outcome_of_rule(rule)


def _answer_of_rule(rule: Rule) -> str:
    parts = [("HTTP", rule.http), ("code", rule.code)]
    return ", ".join([*(_values(what, values) for what, values in parts if values), *filter(None, [rule.contains])])


def _values(what: str, values: Sequence[int | str]) -> str:
    return f"{what} {', '.join(str(value) or 'none' for value in values)}"


def _outcome_of_rule(rule: Rule) -> Outcome:
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
