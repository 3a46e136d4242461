"""The failures that each channel can play, with the meaning of their value. The documentation shows this table."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """One failure of one channel."""

    means: str
    value: str | None = None  # what the value is; None: it takes no value
    account: bool = False  # it strikes the whole account, not only the recipient


TELEGRAM = {
    "flood_wait": Kind("FLOOD_WAIT_n: the account must wait", "seconds"),
    "slow_mode": Kind("SLOWMODE_WAIT_n: this chat must wait", "seconds"),
    "privacy": Kind("USER_PRIVACY_RESTRICTED"),
    "premium_required": Kind("PRIVACY_PREMIUM_REQUIRED"),
    "payment_required": Kind("ALLOW_PAYMENT_REQUIRED_n", "stars"),
    "blocked": Kind("USER_IS_BLOCKED"),
    "deactivated": Kind("INPUT_USER_DEACTIVATED"),
    "peer_invalid": Kind("PEER_ID_INVALID"),
    "write_forbidden": Kind("CHAT_WRITE_FORBIDDEN"),
    "peer_flood": Kind("PEER_FLOOD: the account may not write to strangers", account=True),
    "frozen": Kind("FROZEN_METHOD_INVALID: the account is frozen", account=True),
    "auth_key_unregistered": Kind("AUTH_KEY_UNREGISTERED: the session is gone", account=True),
    "session_revoked": Kind("SESSION_REVOKED: the session was ended", account=True),
    "deactivated_ban": Kind("USER_DEACTIVATED_BAN: the account is banned", account=True),
    "auth_key_duplicated": Kind("AUTH_KEY_DUPLICATED: the session is used twice", account=True),
    "random_id_duplicate": Kind("RANDOM_ID_DUPLICATE: a call with this id is still running"),
    "stored_then_error": Kind("the message is stored, the answer is an error 500"),
    "server_error": Kind("error 500, nothing is stored"),
    "timeout": Kind("no answer, nothing is stored"),
    "stored_then_silence": Kind("the message is stored, there is no answer"),
    "disconnect_before": Kind("the connection is cut, nothing is stored"),
    "disconnect_after": Kind("the message is stored, then the connection is cut"),
}

VK = {
    "error": Kind("this peer's entry carries the error", "VK error code"),
    "call_error": Kind("the whole messages.send fails: `false` and an entry in execute_errors", "VK error code"),
    "peer_poison": Kind("the whole messages.send is refused with error 100 because of this id"),
    "request_error": Kind("the HTTP request as a whole answers with the error", "VK error code"),
    "too_fast": Kind("error 6 for the HTTP request"),
    "execute_errors_mismatch": Kind("the messages.send fails, but execute_errors has no entry for it"),
    "bad_gateway": Kind("HTTP 502 with an HTML page, nothing is stored"),
    "not_json": Kind("HTTP 200 with an HTML page, nothing is stored"),
    "stored_then_error": Kind("the messages are stored, the answer is HTTP 500"),
    "timeout": Kind("no answer, nothing is stored"),
    "disconnect_before": Kind("the connection is cut, nothing is stored"),
    "disconnect_after": Kind("the messages are stored, then the connection is cut"),
}

SMS = {
    "no_report": Kind("accepted and delivered, no report comes"),
    "report_failed": Kind("accepted, the report says failed (2), the person gets nothing"),
    "report_rejected": Kind("accepted, the report says rejected (16), the person gets nothing"),
    "report_buffered": Kind("a report buffered (4), then delivered (1)"),
    "report_twice": Kind("each report comes twice"),
    "report_before_answer": Kind("the reports come before the answer to sendsms"),
    "report_out_of_order": Kind("delivered (1) comes before accepted (8)"),
    "report_late": Kind("the reports come late", "seconds"),
    "wrong_secret": Kind("the reports come to the right address with a forged query"),
    "accepted_then_cut": Kind("accepted and delivered, the connection is cut before the answer"),
    "disconnect_before": Kind("the connection is cut, nothing is stored"),
    "timeout": Kind("no answer, nothing is stored"),
    "bad_number": Kind("a final 4xx answer"),
    "bad_gateway": Kind("HTTP 502 with an HTML page, nothing is stored"),
    "busy": Kind("HTTP 503 `Temporal failure, try again later.`"),
    "queued": Kind("202 `3: Queued for later delivery`, delivered and reported"),
}

FAULTS = {"telegram": TELEGRAM, "vk": VK, "sms": SMS}
