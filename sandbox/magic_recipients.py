"""Magic recipients: a message to one of these addresses always meets with the fault of the address.

docs/sandbox.md shows the tables and a test compares them. Append new faults at the end of a list: the position in the
list determines the address. An e-mail address, and the name of a model, has the name of its fault.
"""

from sandbox.events import Fault

_TELEGRAM = [
    Fault("flood_wait", 2),
    Fault("slow_mode", 2),
    Fault("privacy"),
    Fault("premium_required"),
    Fault("payment_required", 5),
    Fault("blocked"),
    Fault("deactivated"),
    Fault("peer_invalid"),
    Fault("write_forbidden"),
    Fault("random_id_duplicate"),
    Fault("stored_then_error"),
    Fault("server_error"),
    Fault("timeout"),
    Fault("stored_then_silence"),
    Fault("disconnect_before"),
    Fault("disconnect_after"),
    Fault("peer_flood"),
    Fault("frozen"),
    Fault("auth_key_unregistered"),
    Fault("session_revoked"),
    Fault("deactivated_ban"),
    Fault("auth_key_duplicated"),
    Fault("rate_limit", 20),
    Fault("stored_then_refused"),
    Fault("second_refused"),
]

_VK_CODES = [901, 902, 900, 7, 15, 18, 100, 113, 917, 936, 945, 983, 913, 914, 911, 912, 9, 1, 10, 950]

_VK = [
    *(Fault("error", code) for code in _VK_CODES),
    Fault("call_error", 100),
    Fault("call_error", 10),
    Fault("call_error", 9),
    Fault("peer_poison"),
    Fault("too_fast"),
    *(Fault("request_error", code) for code in (1, 5, 9, 10, 12, 13, 14, 17, 27, 28, 29, 36, 3300)),
    Fault("execute_errors_mismatch"),
    Fault("bad_gateway"),
    Fault("not_json"),
    Fault("stored_then_error"),
    Fault("timeout"),
    Fault("disconnect_before"),
    Fault("disconnect_after"),
    Fault("rate_limit", 20),
    Fault("stored_then_refused"),
]

_SMS = [
    Fault("no_report"),
    Fault("report_failed"),
    Fault("report_rejected"),
    Fault("report_buffered"),
    Fault("report_twice"),
    Fault("report_before_answer"),
    Fault("report_out_of_order"),
    Fault("report_late", 2),
    Fault("wrong_secret"),
    Fault("accepted_then_cut"),
    Fault("disconnect_before"),
    Fault("timeout"),
    Fault("bad_number"),
    Fault("bad_gateway"),
    Fault("busy"),
    Fault("queued"),
    Fault("unauthorized"),
    Fault("no_money"),
    Fault("not_json"),
]

_OUTAGES = [
    Fault("server_error"),
    Fault("bad_gateway"),
    Fault("not_json"),
    Fault("stored_then_error"),
    Fault("stored_then_bad_gateway"),
    Fault("stored_then_not_json"),
    Fault("timeout"),
    Fault("stored_then_silence"),
    Fault("disconnect_before"),
    Fault("disconnect_after"),
]

_TELEGRAM_BOT = [
    Fault("flood_wait", 2),
    Fault("blocked"),
    Fault("deactivated"),
    Fault("cannot_initiate"),
    Fault("kicked"),
    Fault("chat_not_found"),
    Fault("no_rights"),
    Fault("migrated"),
    Fault("unauthorized"),
    *_OUTAGES,
    Fault("rate_limit", 20),
]

_MAX = [
    Fault("flood_wait", 2),
    Fault("too_fast"),
    Fault("suspended"),
    Fault("dialog_not_found"),
    Fault("not_found_at_first", 1),
    Fault("chat_not_found"),
    Fault("bad_payload"),
    Fault("not_ready", 2),
    Fault("method_not_allowed"),
    Fault("unauthorized"),
    Fault("denied_with_200"),
    Fault("error_with_200"),
    Fault("busy"),
    *_OUTAGES,
    Fault("rate_limit", 20),
    Fault("dialog_rate", 2),
]

_EMAIL = [
    Fault("refused"),
    Fault("mailbox_full"),
    Fault("greylisted", 1),
    Fault("shutting_down"),
    Fault("disconnect_before"),
    Fault("content_refused"),
    Fault("busy"),
    Fault("stored_then_cut"),
    Fault("cut_after_data"),
    Fault("stored_then_silence"),
    Fault("timeout"),
    Fault("rcpt_silence"),
    Fault("rcpt_answer", 530),
    Fault("flood_detected"),
    Fault("data_shutting_down"),
]

_MODELS = [
    Fault("throttled", 1),
    Fault("unauthorized"),
    Fault("server_error"),
    Fault("bad_gateway"),
    Fault("not_json"),
    Fault("empty"),
    Fault("cut"),
    Fault("slow", 5),
    Fault("timeout"),
    Fault("disconnect_before"),
]

_VACANCIES = [
    Fault("unauthorized"),
    Fault("throttled", 1),
    Fault("server_error"),
    Fault("stored_then_error"),
    Fault("disconnect_before"),
    Fault("disconnect_after"),
]


def _numbered(faults: list[Fault], first: int, prefix: str = "") -> dict[str, Fault]:
    return {f"{prefix}{first + position}": fault for position, fault in enumerate(faults)}


MAGIC_RECIPIENTS = {
    "telegram": _numbered(_TELEGRAM, 900_001),
    "vk": _numbered(_VK, 900_001),
    "sms": _numbered(_SMS, 70_000_000_001, "+"),
    "telegram-bot": _numbered(_TELEGRAM_BOT, 900_001),
    "max": _numbered(_MAX, 900_001),
    "email": {f"{fault.name.replace('_', '-')}@sandbox.example": fault for fault in _EMAIL},
    "models": {fault.name.replace("_", "-"): fault for fault in _MODELS},
    "vacancies": {fault.name.replace("_", "-"): fault for fault in _VACANCIES},
}
