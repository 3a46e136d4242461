"""The faults that can be injected into each channel. docs/sandbox.md shows this table."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FaultKind:
    """One kind of fault of one channel."""

    meaning: str
    value: str | None = None  # the meaning of the value; None: it takes no value
    account: bool = False  # it affects the whole account, not only the recipient
    is_early: bool = False  # it comes before the recipient is known, so only a rule can inject it


TELEGRAM = {
    "flood_wait": FaultKind("FLOOD_WAIT_n: the account must wait", "seconds"),
    "slow_mode": FaultKind("SLOWMODE_WAIT_n: this chat must wait", "seconds"),
    "privacy": FaultKind("USER_PRIVACY_RESTRICTED"),
    "premium_required": FaultKind("PRIVACY_PREMIUM_REQUIRED"),
    "payment_required": FaultKind("ALLOW_PAYMENT_REQUIRED_n", "stars"),
    "blocked": FaultKind("USER_IS_BLOCKED"),
    "deactivated": FaultKind("INPUT_USER_DEACTIVATED"),
    "peer_invalid": FaultKind("PEER_ID_INVALID"),
    "write_forbidden": FaultKind("CHAT_WRITE_FORBIDDEN"),
    "peer_flood": FaultKind("PEER_FLOOD: the account may not write to strangers", account=True),
    "frozen": FaultKind("FROZEN_METHOD_INVALID: the account is frozen", account=True),
    "auth_key_unregistered": FaultKind("AUTH_KEY_UNREGISTERED: the session does not exist any more", account=True),
    "session_revoked": FaultKind("SESSION_REVOKED: the session was ended", account=True),
    "deactivated_ban": FaultKind("USER_DEACTIVATED_BAN: the account is banned", account=True),
    "auth_key_duplicated": FaultKind("AUTH_KEY_DUPLICATED: the session is used twice", account=True),
    "random_id_duplicate": FaultKind("RANDOM_ID_DUPLICATE: a call with this id is still being processed"),
    "stored_then_error": FaultKind("the message is stored, the response is error 500"),
    "server_error": FaultKind("error 500, nothing is stored"),
    "timeout": FaultKind("no response, nothing is stored"),
    "stored_then_silence": FaultKind("the message is stored, there is no response"),
    "disconnect_before": FaultKind("the connection is closed, nothing is stored"),
    "disconnect_after": FaultKind("the message is stored, then the connection is closed"),
    "rate_limit": FaultKind("FLOOD_WAIT_1 for what exceeds n messages within a second", "messages per second"),
    "stored_then_refused": FaultKind("the message is stored, the response is error 500; the repeat is USER_IS_BLOCKED"),
    "second_refused": FaultKind("the first message is stored, each later one is USER_IS_BLOCKED"),
}

VK = {
    "error": FaultKind("this peer's entry carries the error", "VK error code"),
    "call_error": FaultKind("the whole messages.send fails: `false` and an entry in execute_errors", "VK error code"),
    "peer_poison": FaultKind("the whole messages.send is refused with error 100 because of this peer"),
    "request_error": FaultKind("the whole HTTP request fails with the error", "VK error code"),
    "too_fast": FaultKind("error 6 for the HTTP request"),
    "execute_errors_mismatch": FaultKind("the messages.send fails, but execute_errors has no entry for it"),
    "bad_gateway": FaultKind("HTTP 502 with an HTML page, nothing is stored"),
    "not_json": FaultKind("HTTP 200 with an HTML page, nothing is stored"),
    "stored_then_error": FaultKind("the messages are stored, the response is HTTP 500"),
    "timeout": FaultKind("no response, nothing is stored"),
    "disconnect_before": FaultKind("the connection is closed, nothing is stored"),
    "disconnect_after": FaultKind("the messages are stored, then the connection is closed"),
    "rate_limit": FaultKind("error 6 for what exceeds n HTTP requests within a second", "requests per second"),
    "stored_then_refused": FaultKind("the message is stored, the response is HTTP 500; the repeat is error 901"),
}

SMS = {
    "no_report": FaultKind("accepted and delivered, no delivery report is sent"),
    "report_failed": FaultKind("accepted, the delivery report is failed (2), the recipient receives nothing"),
    "report_rejected": FaultKind("accepted, the delivery report is rejected (16), the recipient receives nothing"),
    "report_buffered": FaultKind("delivery reports buffered (4), then delivered (1)"),
    "report_twice": FaultKind("each delivery report is sent twice"),
    "report_before_answer": FaultKind("the delivery reports are sent before the response to sendsms"),
    "report_out_of_order": FaultKind("delivered (1) is sent before accepted (8)"),
    "report_late": FaultKind("the delivery reports are delayed", "seconds"),
    "wrong_secret": FaultKind("the delivery reports are sent to the right address with a forged query"),
    "accepted_then_cut": FaultKind("accepted and delivered, the connection is closed before the response"),
    "disconnect_before": FaultKind("the connection is closed, nothing is stored"),
    "timeout": FaultKind("no response, nothing is stored"),
    "bad_number": FaultKind("a final 4xx response"),
    "bad_gateway": FaultKind("HTTP 502 with an HTML page, nothing is stored"),
    "busy": FaultKind("HTTP 503 `Temporal failure, try again later.`"),
    "queued": FaultKind("202 `3: Queued for later delivery`, delivered and reported"),
    "unauthorized": FaultKind("403 `Authorization failed for sendsms`: the password was changed", account=True),
    "no_money": FaultKind("of a provider with a profile: there is no money on the account", account=True),
    "not_json": FaultKind("of a provider with a profile: HTTP 200 with an HTML page, nothing is stored"),
}

# Of an HTTP API whose calls carry one message each.
_OUTAGES = {
    "server_error": FaultKind("error 500, nothing is stored"),
    "bad_gateway": FaultKind("HTTP 502 with an HTML page, nothing is stored"),
    "not_json": FaultKind("HTTP 200 with an HTML page, nothing is stored"),
    "stored_then_error": FaultKind("the message is stored, the response is error 500"),
    "stored_then_bad_gateway": FaultKind("the message is stored, the response is HTTP 502 with an HTML page"),
    "stored_then_not_json": FaultKind("the message is stored, the response is HTTP 200 with an HTML page"),
    "timeout": FaultKind("no response, nothing is stored"),
    "stored_then_silence": FaultKind("the message is stored, there is no response"),
    "disconnect_before": FaultKind("the connection is closed, nothing is stored"),
    "disconnect_after": FaultKind("the message is stored, then the connection is closed"),
}

TELEGRAM_BOT = {
    "flood_wait": FaultKind("429 with retry_after", "seconds"),
    "blocked": FaultKind("403: the person has blocked the bot"),
    "deactivated": FaultKind("403: the account of the person is deleted"),
    "cannot_initiate": FaultKind("403: the person has never started the bot"),
    "kicked": FaultKind("403: the bot was removed from the group"),
    "chat_not_found": FaultKind("400: there is no such chat"),
    "no_rights": FaultKind("400: the bot may not write in this chat"),
    "migrated": FaultKind("400 with migrate_to_chat_id, which is -1000000000000 minus the id"),
    "unauthorized": FaultKind("401: the token was revoked", account=True),
    **_OUTAGES,
    "rate_limit": FaultKind("429 with retry_after 1 for what exceeds n calls within a second", "calls per second"),
}

MAX = {
    "flood_wait": FaultKind("429 with Retry-After", "seconds"),
    "too_fast": FaultKind("429 without Retry-After"),
    "suspended": FaultKind("403 chat.denied, error.dialog.suspended: the person has stopped the bot"),
    "dialog_not_found": FaultKind("404 dialog.not.found: the person has never started the bot"),
    "not_found_at_first": FaultKind("404 dialog.not.found for the first n attempts, then accepted", "attempts"),
    "chat_not_found": FaultKind("404 chat.not.found: there is no such chat"),
    "bad_payload": FaultKind("400 proto.payload: the content is refused"),
    "not_ready": FaultKind("400 attachment.not.ready for the first n attempts, then accepted", "attempts"),
    "method_not_allowed": FaultKind("405 method.not.allowed"),
    "unauthorized": FaultKind("401 verify.token: the token was withdrawn", account=True),
    "denied_with_200": FaultKind("HTTP 200 with the error chat.denied, nothing is stored"),
    "error_with_200": FaultKind("HTTP 200 with the error internal.error, nothing is stored"),
    "busy": FaultKind("503 service.unavailable, nothing is stored"),
    **_OUTAGES,
    "rate_limit": FaultKind("429 without Retry-After for what exceeds n calls within a second", "calls per second"),
    "dialog_rate": FaultKind(
        "429 without Retry-After for what exceeds n calls within a second in one dialog", "calls per second"
    ),
}

VACANCIES = {
    "unauthorized": FaultKind("401: the access token is not valid any more"),
    "throttled": FaultKind("429 with Retry-After", "seconds"),
    "server_error": FaultKind("error 500, nothing is stored"),
    "stored_then_error": FaultKind("the application is stored, the response is error 500"),
    "disconnect_before": FaultKind("the connection is closed, nothing is stored"),
    "disconnect_after": FaultKind("the application is stored, then the connection is closed"),
}

EMAIL = {
    "refused": FaultKind("RCPT: 550 5.1.1, there is no such mailbox"),
    "mailbox_full": FaultKind("RCPT: 452 4.2.2, the mailbox is full"),
    "greylisted": FaultKind("RCPT: 451 4.7.1 for the first n attempts, then accepted", "attempts"),
    "shutting_down": FaultKind("RCPT: 421 4.3.2, then the connection is closed"),
    "disconnect_before": FaultKind("RCPT: the connection is closed, nothing is stored"),
    "content_refused": FaultKind("DATA: 554 5.7.1, the message is taken for spam"),
    "busy": FaultKind("DATA: 451 4.3.0, nothing is stored"),
    "stored_then_cut": FaultKind("DATA: the message is stored, then the connection is closed"),
    "cut_after_data": FaultKind("DATA: the connection is closed, nothing is stored"),
    "stored_then_silence": FaultKind("DATA: the message is stored, there is no answer"),
    "timeout": FaultKind("DATA: no answer, nothing is stored"),
    "rcpt_silence": FaultKind("RCPT: no answer"),
    "rcpt_answer": FaultKind("RCPT: this status", "status"),
    "flood_detected": FaultKind("RCPT: 450 4.7.28, too many mails of this kind"),
    "data_shutting_down": FaultKind("DATA: 421 4.3.2, then the connection is closed, nothing is stored"),
    "utf8_refused": FaultKind("MAIL with SMTPUTF8: 550 5.6.7", is_early=True),
    "sender_refused": FaultKind("MAIL: 550 5.7.1, the sender is refused", account=True, is_early=True),
    "rate_limit": FaultKind(
        "MAIL: 451 4.7.0 for what exceeds n messages within a second", "messages per second", is_early=True
    ),
    "sign_in_refused": FaultKind("AUTH: 535 5.7.8, the password is wrong", account=True, is_early=True),
    "sign_in_deferred": FaultKind(
        "AUTH: 454 4.7.0, the server cannot check passwords now", account=True, is_early=True
    ),
}

MODELS = {
    "throttled": FaultKind("429 with Retry-After", "seconds"),
    "unauthorized": FaultKind("401: the key or the token is refused", account=True),
    "server_error": FaultKind("HTTP 500"),
    "bad_gateway": FaultKind("HTTP 502 with an HTML page"),
    "not_json": FaultKind("HTTP 200 with an HTML page"),
    "empty": FaultKind("HTTP 200 without a body"),
    "cut": FaultKind("half of the answer, then the connection is closed"),
    "slow": FaultKind("the right answer after a wait", "seconds"),
    "timeout": FaultKind("no response"),
    "disconnect_before": FaultKind("the connection is closed"),
}

FAULTS = {
    "telegram": TELEGRAM,
    "vk": VK,
    "sms": SMS,
    "telegram-bot": TELEGRAM_BOT,
    "max": MAX,
    "email": EMAIL,
    "models": MODELS,
    "vacancies": VACANCIES,
}
