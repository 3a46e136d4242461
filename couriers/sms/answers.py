"""Kannel's answers to sendsms, each with what it means for the message. The whole table is here.

Nothing protects from a double: what may have been accepted is `Unknown`, and only who never connected, or was told so,
has surely sent nothing. HTTP 200 is not success; 202 is, with words of Kannel's.
Source: Kannel user guide 1.4.5, "SMS push reply codes"; gw/smsbox.c (smsbox_req_sendsms, delayed_http_reply).
"""

from datetime import timedelta

import aiohttp

from core.courier import Deferred, Halted, Outcome, Reason, Rejected, Scope, Sent, Unknown

OUTAGE = timedelta(seconds=5)  # between two attempts to connect; named, so that a long outage uses up nobody's attempts
MINUTE = timedelta(minutes=1)

ACCEPTED = ("0: Accepted for delivery", "3: Queued for later delivery", "Sent.")
LATER = "Temporal failure, try again later."
REFUSALS = {
    "Number(s) has/have been denied": Reason.RECIPIENT_UNREACHABLE,
    "Missing receiver number": Reason.RECIPIENT_UNREACHABLE,
    "Empty receiver number": Reason.RECIPIENT_UNREACHABLE,
    "Not routable": Reason.RECIPIENT_UNREACHABLE,
    "Charset or body misformed": Reason.CONTENT_REFUSED,
    "Empty text not allowed": Reason.CONTENT_REFUSED,
}
# The operator's: no message would get through before somebody mends it.
MISSET = {
    "Authorization failed": "check ADA_SMS_USERNAME and ADA_SMS_PASSWORD",
    "Sender missing": "set ADA_SMS_FROM",
    "DLR-URL field misformed": "check ADA_SMS_CALLBACK_URL",
}


def read(status: int, body: str) -> Outcome:
    """What an answer means for the message.

    Only words known here are passed on: other servers show the address they were asked for, and with it the password.
    """
    words = next((words for words in (*ACCEPTED, *REFUSALS, *MISSET, LATER) if body.startswith(words)), "")
    said = f"{status} {words}".rstrip()
    match status:
        case 202:
            return Sent() if words in ACCEPTED else Unknown(said)
        case 503:
            return Deferred(Reason.PROVIDER_DOWN, None, Scope.RECIPIENT, said)
        case 429:
            return Deferred(Reason.THROTTLED, MINUTE, Scope.ACCOUNT, said)
        case 413 | 414:
            return Rejected(Reason.CONTENT_REFUSED, said)
        case 400 | 403:
            return _refused(status, words, said)
        case _ if 300 <= status < 500 and status != 408:
            return Halted(f"the gateway answers {said}: check ADA_SMS_URL")
    return Unknown(said)


def _refused(status: int, words: str, said: str) -> Outcome:
    if words in MISSET:
        return Halted(f"the gateway answers {said}: {MISSET[words]}")
    if words not in REFUSALS and status == 403:
        return Halted(f"the gateway answers {said}: check what it allows this user")
    return Rejected(REFUSALS.get(words, Reason.RECIPIENT_UNREACHABLE), said)


def failed(error: Exception) -> Outcome:
    """What a failure of the connection means."""
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return Deferred(Reason.PROVIDER_DOWN, OUTAGE, Scope.ACCOUNT, type(error).__name__)
    return Unknown(type(error).__name__)
