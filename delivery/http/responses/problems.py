"""Problem documents (RFC 9457): every response that is not 2xx or 3xx is one, with a stable `code`.

`CODES` is the vocabulary. A code of core that is not in it gets the status of its class of error.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import hdrs, web
from msgspec import UNSET, to_builtins

from core.directory.importing import ImportRefused, RowError
from core.errors import Conflict, Forbidden, Invalid, NotFound, Refused, StoreFull, StoreRefuses, TooMany
from delivery.schemas.responses import FieldError, ProblemDocument

CONTENT_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True)
class ProblemType:
    """What is the same in every problem with one code."""

    status: int
    title: str


CODES = {
    # the request as HTTP
    "ROUTE_NOT_FOUND": ProblemType(404, "No such address"),
    "METHOD_NOT_ALLOWED": ProblemType(405, "The address does not support this method"),
    "EXPECTATION_FAILED": ProblemType(417, "The expectation cannot be met"),
    "BODY_TOO_LARGE": ProblemType(413, "The body is too large"),
    "BODY_MALFORMED": ProblemType(400, "The body could not be received"),
    "BODY_TOO_SLOW": ProblemType(408, "The body did not arrive in time"),
    "CONTENT_ENCODING_UNSUPPORTED": ProblemType(415, "The encoding of the body is not supported"),
    "CONTENT_TYPE_UNSUPPORTED": ProblemType(415, "The content type of the body is not supported"),
    "REQUEST_MALFORMED": ProblemType(400, "The request is not valid HTTP"),
    "INTERNAL": ProblemType(500, "Internal error"),
    "STORE_UNAVAILABLE": ProblemType(503, "The store cannot be reached"),
    "STORE_FULL": ProblemType(503, "The store is full"),
    "STORE_CANNOT_SAVE": ProblemType(503, "The store cannot write to its disk"),
    "STORE_READ_ONLY": ProblemType(503, "The store is read-only"),
    "STORE_WITHOUT_REPLICAS": ProblemType(503, "The store has too few replicas"),
    "STORE_CLUSTER_DOWN": ProblemType(503, "The cluster of the store is down"),
    "SHUTTING_DOWN": ProblemType(503, "This process is shutting down"),
    # authentication
    "KEY_MISSING": ProblemType(401, "An API key is required"),
    "KEY_UNKNOWN": ProblemType(401, "The API key is unknown"),
    "SESSION_ENDED": ProblemType(401, "The session has ended"),
    "LINK_USED": ProblemType(403, "The link was used or has expired"),
    "KEY_NOT_FOUND": ProblemType(404, "No such API key"),
    "KEY_NAME_MALFORMED": ProblemType(400, "The name of the API key is malformed"),
    "TENANT_MALFORMED": ProblemType(400, "The name of the tenant is malformed"),
    "CROSS_SITE": ProblemType(403, "The request came from a page of another site"),
    "NOT_FOR_PEOPLE": ProblemType(403, "This needs an API key"),
    "NOT_YOURSELF": ProblemType(403, "A person acts only in its own name"),
    "FOR_PROGRAMS": ProblemType(403, "This field is for programs"),
    "CONTACTS_NOT_ALLOWED": ProblemType(403, "A person writes only to people of the directory"),
    "SCOPE_MISSING": ProblemType(403, "The API key may not do this"),
    "RECEIPT_SECRET_WRONG": ProblemType(403, "The token of this delivery report is wrong"),
    "INBOUND_SECRET_WRONG": ProblemType(403, "The secret of this message is wrong"),
    "PROOF_NOT_SET_UP": ProblemType(404, "This server has no key to prove itself with"),
    "INBOUND_NOT_SET_UP": ProblemType(404, "Nothing is received from this provider"),
    "RATE_EXCEEDED": ProblemType(429, "Too many requests"),
    # the body as JSON
    "JSON_MALFORMED": ProblemType(400, "The body is not JSON"),
    "JSON_NOT_UTF8": ProblemType(400, "The body is not UTF-8"),
    "JSON_BYTE_ORDER_MARK": ProblemType(400, "The body begins with a byte order mark"),
    "JSON_DUPLICATE_KEY": ProblemType(400, "A name occurs twice in one object"),
    "JSON_NOT_A_NUMBER": ProblemType(400, "NaN and Infinity are not JSON"),
    "JSON_TOO_DEEP": ProblemType(400, "The body is nested too deeply"),
    # validation of body and query
    "UNKNOWN_FIELD": ProblemType(400, "Unknown field"),
    "UNKNOWN_PARAMETER": ProblemType(400, "Unknown parameter"),
    "PARAMETER_REPEATED": ProblemType(400, "This parameter is given more than once"),
    "REQUIRED": ProblemType(400, "A field is missing"),
    "WRONG_TYPE": ProblemType(400, "A value is of the wrong type"),
    "WRONG_VALUE": ProblemType(400, "A value is not one of the allowed ones"),
    "WRONG_FORMAT": ProblemType(400, "A text is not in the expected format"),
    "OUT_OF_RANGE": ProblemType(400, "A number is out of range"),
    "TOO_SHORT": ProblemType(400, "A value is too short"),
    "TOO_LONG": ProblemType(400, "A value is too long"),
    "NUL_CHARACTER": ProblemType(400, "A text contains a NUL character"),
    "LONE_SURROGATE": ProblemType(400, "A text contains half of a surrogate pair"),
    "NOT_PRINTABLE": ProblemType(400, "A name contains characters that are not printable"),
    # a delivery
    "TEXT_EMPTY": ProblemType(400, "The text is empty"),
    "TEXT_TOO_LONG": ProblemType(400, "The text is too long"),
    "CONTENT_TOO_LARGE": ProblemType(400, "The content is too large"),
    "TOO_MANY_BUTTONS": ProblemType(400, "There are too many buttons"),
    "BUTTON_MALFORMED": ProblemType(400, "A button is malformed"),
    "TOO_MANY_ATTACHMENTS": ProblemType(400, "There are too many attachments"),
    "ATTACHMENT_MALFORMED": ProblemType(400, "An attachment is malformed"),
    "NO_RECIPIENTS": ProblemType(400, "There is no recipient"),
    "TOO_MANY_RECIPIENTS": ProblemType(400, "There are too many recipients"),
    "RECIPIENT_MALFORMED": ProblemType(400, "A recipient given as text is malformed"),
    "RECIPIENT_WITHOUT_ID": ProblemType(400, "A recipient has no id"),
    "RECIPIENT_AMBIGUOUS": ProblemType(400, "A recipient is a person or a group, not both"),
    "NOBODY_ADDRESSED": ProblemType(400, "The groups have no members"),
    "NOT_OWNER": ProblemType(403, "The sender may not write to this group"),
    "AUDIT_RUNNING": ProblemType(409, "An audit is running already"),
    "FINDING_NOT_FOUND": ProblemType(404, "The last audit has no such finding"),
    "NO_SAFE_REPAIR": ProblemType(409, "There is no safe repair"),
    "TEMPLATE_NOT_FOUND": ProblemType(404, "No such template"),
    "TOO_MANY_TEMPLATES": ProblemType(409, "There are too many templates"),
    "SENDER_BLOCKED": ProblemType(403, "The sender is blocked"),
    "QUOTA_EXCEEDED": ProblemType(429, "The quota of the sender is used up"),
    "URGENT_NOT_ALLOWED": ProblemType(403, "The API key may not send in quiet hours"),
    "QUIET_HOURS": ProblemType(409, "These are quiet hours"),
    "UNKNOWN_CHANNEL": ProblemType(400, "Unknown channel"),
    "WAIT_MALFORMED": ProblemType(400, "This is not a duration"),
    "WAIT_OUT_OF_RANGE": ProblemType(400, "The wait is too short or too long"),
    "WAIT_WITHOUT_FIRST": ProblemType(400, "A wait belongs to the strategy first"),
    "TIME_MALFORMED": ProblemType(400, "A time is not in the format of RFC 3339"),
    "TIME_WITHOUT_ZONE": ProblemType(400, "A time has no zone"),
    "TIME_OUT_OF_RANGE": ProblemType(400, "A time is out of range"),
    "EXPIRES_BEFORE_DUE": ProblemType(400, "The delivery would expire before it is due"),
    "CURSOR_MALFORMED": ProblemType(400, "The cursor is malformed"),
    "LAST_EVENT_ID_MALFORMED": ProblemType(400, "Last-Event-ID is not a number"),
    "REPORT_MALFORMED": ProblemType(400, "The delivery report has no known status"),
    "ONE_FIELD_WANTED": ProblemType(400, "Exactly one field is required"),
    # an event
    "BOT_NOT_SET_UP": ProblemType(404, "The tenant has no bot with scenarios"),
    "EVENT_ATTACHMENTS_MALFORMED": ProblemType(400, "The attachments of an event are malformed"),
    "EVENT_CHANNEL_MALFORMED": ProblemType(400, "The channel of an event is malformed"),
    "EVENT_ID_MALFORMED": ProblemType(400, "The id of an event is malformed"),
    "EVENT_KIND_UNKNOWN": ProblemType(400, "The kind of an event is unknown"),
    "EVENT_MALFORMED": ProblemType(400, "A value of an event cannot be stored"),
    "EVENT_TOO_LARGE": ProblemType(413, "The event is too large"),
    "EVENT_WITHOUT_USER": ProblemType(400, "The event has no user"),
    # a webhook
    "RUN_NOT_FOUND": ProblemType(404, "No such run"),
    "RUN_OVER": ProblemType(409, "The run is over"),
    "RUN_WITHOUT_TASK": ProblemType(409, "The event of the run is not in the queue any more"),
    "BOT_NOT_LOADED": ProblemType(404, "No process has loaded a bot of this tenant"),
    "SCENARIO_NOT_FOUND": ProblemType(404, "No such scenario"),
    "JOB_NOT_FOUND": ProblemType(404, "No such job"),
    "JOB_KIND_UNKNOWN": ProblemType(422, "No process runs this kind of job"),
    "JOB_ALREADY_RUNNING": ProblemType(409, "The job was started before"),
    "JOB_HAS_CHANGED": ProblemType(409, "The job was changed by another process"),
    "JOB_IN_OTHER_STATE": ProblemType(409, "The state of the job does not allow this"),
    "JOB_PAUSED_BY_OTHER": ProblemType(403, "Somebody else has paused the job"),
    "JOB_CHANGES_TOO_OFTEN": ProblemType(409, "The job is being changed by others all the time"),
    "UNIT_NOT_FOUND": ProblemType(404, "Nothing is recorded of this unit"),
    "UNIT_NOT_UNCLEAR": ProblemType(409, "What became of this unit is known"),
    "UNIT_IN_HAND": ProblemType(409, "This unit is being done at this moment"),
    "PARAMETERS_MALFORMED": ProblemType(422, "The parameters are not what JSON has"),
    "PARAMETERS_TOO_LARGE": ProblemType(422, "The parameters are too large"),
    "TIMEZONE_UNKNOWN": ProblemType(422, "No such time zone"),
    "ADMIN_NEEDED": ProblemType(403, "The key has not the scope admin"),
    "SIGN_IN_NOT_SET_UP": ProblemType(404, "There is no service to sign in to"),
    "SERVICE_UNKNOWN": ProblemType(422, "No such service to sign in to"),
    "SIGN_IN_UNKNOWN": ProblemType(422, "This sign-in is not known, was used before, or took too long"),
    "SIGN_IN_OTHER_BROWSER": ProblemType(403, "This sign-in was begun in another browser"),
    "SIGN_IN_NOT_CONFIRMED": ProblemType(403, "The page of the sign-in was not confirmed in this browser"),
    "SIGN_IN_FAILED": ProblemType(502, "The service did not answer as it should"),
    "NOT_SIGNED_IN": ProblemType(404, "The user has not signed in to this service"),
    "SIGN_IN_REFUSED": ProblemType(422, "The service did not sign the user in"),
    "WEBHOOK_NOT_FOUND": ProblemType(404, "No such webhook"),
    "WEBHOOK_URL_MALFORMED": ProblemType(400, "The URL of the webhook is malformed"),
    "WEBHOOK_HOST_UNKNOWN": ProblemType(400, "The host of the webhook has no address"),
    "WEBHOOK_TARGET_FORBIDDEN": ProblemType(400, "The address of the webhook is not public"),
    "WEBHOOK_WITHOUT_EVENTS": ProblemType(400, "The webhook has no event"),
    "TOO_MANY_WEBHOOKS": ProblemType(409, "There are too many webhooks"),
    # the directory
    "GROUP_NOT_FOUND": ProblemType(404, "No such group"),
    "SUPERGROUP_NOT_FOUND": ProblemType(404, "No such supergroup"),
    "USER_NOT_FOUND": ProblemType(404, "No such person"),
    "CONTACT_NOT_FOUND": ProblemType(404, "The person does not have this contact"),
    "SAME_PERSON": ProblemType(400, "Both are the same person"),
    "USER_EXISTS": ProblemType(409, "There is a person with this id"),
    "EMAIL_TAKEN": ProblemType(409, "Another person has this e-mail address"),
    "CONTACT_TAKEN": ProblemType(409, "Another person has this contact"),
    "GROUP_EXISTS": ProblemType(409, "There is a group with this id"),
    "SUPERGROUP_EXISTS": ProblemType(409, "There is a supergroup with this id"),
    "GROUP_NOT_OWNED": ProblemType(409, "The owner of a supergroup must own each of its groups"),
    "LIMIT_REACHED": ProblemType(409, "The directory allows no more of these"),
    "EMAIL_MALFORMED": ProblemType(422, "The e-mail address is malformed"),
    "MARKS_BROKEN": ProblemType(422, "The text has a mark that cannot be shown"),
    "ADDRESS_MALFORMED": ProblemType(422, "A contact is no address of its channel"),
    "CONTACT_MALFORMED": ProblemType(400, "A contact is not channel:address"),
    "UNKNOWN_ROLE": ProblemType(400, "Unknown role"),
    "UNKNOWN_LOCALE": ProblemType(400, "Unknown locale"),
    # linking
    "EMAIL_UNKNOWN": ProblemType(404, "No person has this e-mail address"),
    "CONTACT_LINKED": ProblemType(409, "The contact is linked already"),
    "CONTACT_NOT_LINKED": ProblemType(404, "The contact belongs to no person"),
    "CODE_MISSING": ProblemType(404, "No code was requested"),
    "CODE_WRONG": ProblemType(403, "The code is wrong"),
    "CODE_EXPIRED": ProblemType(410, "The code has expired"),
    "TOO_MANY_GUESSES": ProblemType(429, "The code is void after too many wrong ones"),
    "TOO_MANY_MAILS": ProblemType(429, "Too many codes were requested"),
    "MAIL_NOT_SET_UP": ProblemType(409, "There is no mail server"),
    "MAIL_REFUSED": ProblemType(502, "The mail server refused the mail"),
    "MAIL_UNAVAILABLE": ProblemType(503, "The mail server cannot be reached"),
    # uploaded files
    "FILE_EMPTY": ProblemType(400, "The file is empty"),
    "FILE_NOT_FOUND": ProblemType(404, "No such file"),
    "FILE_GONE": ProblemType(409, "A file of the delivery is no longer stored"),
    "FILE_DELETED": ProblemType(409, "The file was deleted while it was stored"),
    "FILES_FULL": ProblemType(409, "There is no room for further files"),
    # CSV import; the codes of rows
    "ROWS_INVALID": ProblemType(422, "The file has errors; nothing was imported"),
    "IMPORT_RUNNING": ProblemType(409, "A file is being imported into the directory"),
    "CSV_EMPTY": ProblemType(422, "The file is empty"),
    "CSV_NOT_UTF8": ProblemType(422, "The encoding of the file is not known"),
    "CSV_NOT_TEXT": ProblemType(422, "The file is not text"),
    "CSV_QUOTE_UNCLOSED": ProblemType(422, "A quotation mark is not closed"),
    "CSV_MALFORMED": ProblemType(422, "A row is not CSV"),
    "CELL_TOO_LONG": ProblemType(422, "A cell is too long"),
    "TOO_MANY_ROWS": ProblemType(422, "The file has too many rows"),
    "COLUMN_MISSING": ProblemType(422, "A column is missing"),
    "COLUMN_UNKNOWN": ProblemType(422, "A column is unknown"),
    "COLUMN_REPEATED": ProblemType(422, "A column occurs more than once"),
    "WRONG_NUMBER_OF_CELLS": ProblemType(422, "A row has more or fewer cells than the header"),
    "COLUMN_WITHOUT_NAME": ProblemType(422, "A column with texts has no name"),
    "PERSON_UNIDENTIFIED": ProblemType(422, "A row does not say who is meant"),
    "PERSON_AMBIGUOUS": ProblemType(422, "A row may mean several people"),
    "DUPLICATE_ROW": ProblemType(422, "Two rows are about the same"),
    "GROUP_LEAVING": ProblemType(409, "The group is being deleted"),
    # keys
    "HISTORY_KEY_MALFORMED": ProblemType(400, "The history key is malformed"),
    "HISTORY_KEY_OF_ANOTHER_SENDER": ProblemType(400, "The history key was made for another sender"),
    "HISTORY_KEY_USED": ProblemType(409, "The history key is already used by a delivery"),
    "HISTORY_KEY_FOREIGN": ProblemType(403, "The history key belongs to another tenant"),
    "HISTORY_NOT_FOUND": ProblemType(404, "No such delivery"),
    "REFERENCE_UNKNOWN": ProblemType(404, "No message has this id of the provider"),
    "PROFILE_NOT_SET_UP": ProblemType(404, "Another profile of SMS is set up"),
    "TASK_NOT_FOUND": ProblemType(404, "No such task"),
    "TASK_TAKEN": ProblemType(409, "The task is running"),
    "TASK_NOT_BURIED": ProblemType(409, "The task is not buried"),
    "TASK_OVER": ProblemType(409, "The task has ended"),
    "SELECTION_EMPTY": ProblemType(400, "No field was given by which tasks are indexed"),
    "TAG_MALFORMED": ProblemType(400, "The tag is malformed"),
    "PRIORITY_OUT_OF_RANGE": ProblemType(400, "The priority is out of range"),
    "TUBE_MALFORMED": ProblemType(400, "The tube name is malformed"),
    "WEIGHT_OUT_OF_RANGE": ProblemType(400, "The weight is out of range"),
    "CLIENT_MALFORMED": ProblemType(400, "The client name is malformed"),
    "RECIPIENT_NOT_FOUND": ProblemType(404, "The delivery has no such recipient"),
    "STATUS_NOT_RETRIABLE": ProblemType(400, "Outcomes with this status cannot be retried"),
    "NOT_RELEASED": ProblemType(409, "The delivery is not released yet"),
    "CANCELLED": ProblemType(409, "The delivery was cancelled"),
    "ALREADY_RELEASED": ProblemType(409, "The delivery is already released"),
    "ALREADY_FINISHED": ProblemType(409, "The delivery is already finished"),
    "IDEMPOTENCY_KEY_MALFORMED": ProblemType(400, "The Idempotency-Key is malformed"),
    "IDEMPOTENCY_KEY_REUSED": ProblemType(422, "The Idempotency-Key was used with another request"),
    "IDEMPOTENCY_IN_PROGRESS": ProblemType(409, "The first request with this Idempotency-Key is still in progress"),
}

BEYOND_SCHEMA = frozenset(
    {
        *(
            "NOT_PRINTABLE",
            "TEXT_EMPTY",
            "NUL_CHARACTER",
            "LONE_SURROGATE",
            "TOO_MANY_RECIPIENTS",
            "RECIPIENT_MALFORMED",
        ),
        *("GROUP_NOT_FOUND", "SUPERGROUP_NOT_FOUND", "UNKNOWN_CHANNEL", "WAIT_WITHOUT_FIRST"),
        *("TOO_MANY_BUTTONS", "BUTTON_MALFORMED", "CONTENT_TOO_LARGE"),
        *("TIME_MALFORMED", "TIME_OUT_OF_RANGE", "EXPIRES_BEFORE_DUE", "CURSOR_MALFORMED"),
        *("HISTORY_KEY_MALFORMED", "HISTORY_KEY_OF_ANOTHER_SENDER", "IDEMPOTENCY_KEY_REUSED", "REQUEST_MALFORMED"),
        *(
            "KEY_NAME_MALFORMED",
            "EMAIL_MALFORMED",
            "ADDRESS_MALFORMED",
            "MARKS_BROKEN",
            "REPORT_MALFORMED",
            "WAIT_OUT_OF_RANGE",
        ),
        *("USER_NOT_FOUND", "SAME_PERSON", "NOBODY_ADDRESSED", "ROWS_INVALID", "TOO_LONG"),
        *("FILE_EMPTY", "ONE_FIELD_WANTED", "SELECTION_EMPTY", "TUBE_MALFORMED"),
        *("JOB_KIND_UNKNOWN", "PARAMETERS_TOO_LARGE", "TIMEZONE_UNKNOWN"),
        *("CSV_EMPTY", "CSV_NOT_UTF8", "CSV_NOT_TEXT", "CSV_QUOTE_UNCLOSED", "CSV_MALFORMED", "TOO_MANY_ROWS"),
        *("WEBHOOK_URL_MALFORMED", "WEBHOOK_HOST_UNKNOWN", "WEBHOOK_TARGET_FORBIDDEN"),
    }
)
"""Codes 400 and 422 of requests that match the schema: it depends on the time, on what is stored or installed, on two
fields together, on a part of a text, or on rare characters. The OpenAPI document names them. The schema shows every
other such fault.
"""

NOTHING_WRITTEN = "Nothing was written."
OUTCOME_UNKNOWN = (
    "It may have been done. A repeat with the same Idempotency-Key is safe; without one it is a new request."
)

_BY_CLASS: dict[type[Refused], ProblemType] = {
    Invalid: ProblemType(400, "The request is invalid"),
    NotFound: ProblemType(404, "It does not exist"),
    Conflict: ProblemType(409, "The current state does not allow it"),
    Forbidden: ProblemType(403, "This API key does not allow it"),
    TooMany: ProblemType(429, "A limit is reached"),
}
_REFUSED = ProblemType(400, "Refused")


class InvalidFields(Invalid):
    """The request has errors, all of which are reported. `code` is that of the first."""

    def __init__(self, errors: Sequence[FieldError]) -> None:
        first = errors[0]
        super().__init__(first.code, first.message, first.path)
        self.errors = errors


def invalid_field(path: str, code: str, message: str) -> InvalidFields:
    """Return the exception for one error."""
    return InvalidFields([FieldError(path, code, message)])


def respond(document: ProblemDocument, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return the HTTP response. Whatever it quotes of the request, its body is valid JSON in ASCII."""
    body = json.dumps(to_builtins(document), separators=(",", ":")).encode()
    return web.Response(status=document.status, body=body, headers={hdrs.CONTENT_TYPE: CONTENT_TYPE, **(headers or {})})


def problem(code: str, detail: str) -> ProblemDocument:
    """Return the problem for a code of `CODES`."""
    return _document(CODES[code], code, detail)


def problem_of_refusal(refused: Refused) -> ProblemDocument:
    """Return the problem for a refusal of core or of validation."""
    kind = CODES.get(refused.code) or _type_of_class(refused)
    if kind.status == 404 and isinstance(refused, Invalid):  # a field of the body names what does not exist
        kind = ProblemType(400, kind.title)
    return _document(kind, refused.code, refused.detail, _errors(refused))


def problem_of_refused_write(refused: StoreRefuses) -> ProblemDocument:
    """Return the problem for a store that refuses writes. What is wrong with it is in the log, not for clients."""
    further = " Accepted deliveries are still delivered, which frees memory." if isinstance(refused, StoreFull) else ""
    return problem(refused.code, NOTHING_WRITTEN + further)


def _type_of_class(refused: Refused) -> ProblemType:
    return next((kind for error, kind in _BY_CLASS.items() if isinstance(refused, error)), _REFUSED)


def _errors(refused: Refused) -> Sequence[FieldError]:
    if isinstance(refused, ImportRefused):
        return [_row_error(error) for error in refused.errors]
    if isinstance(refused, InvalidFields):
        return refused.errors
    return [FieldError(refused.path, refused.code, refused.detail)] if refused.path else ()


def _row_error(error: RowError) -> FieldError:
    return FieldError(f"{error.row}.{error.column}", error.code, error.message, error.row, error.column)


def _document(kind: ProblemType, code: str, detail: str, errors: Sequence[FieldError] = ()) -> ProblemDocument:
    return ProblemDocument(f"/docs#{code}", kind.title, kind.status, detail, code, list(errors) or UNSET)


_HTTP_CODES = {400: "REQUEST_MALFORMED", 404: "ROUTE_NOT_FOUND", 405: "METHOD_NOT_ALLOWED", 413: "BODY_TOO_LARGE"}


def problem_of_status(status: int) -> ProblemDocument:
    """Return the problem for a request that aiohttp refused."""
    phrase = HTTPStatus(status).phrase
    code = _HTTP_CODES.get(status, phrase.upper().replace(" ", "_").replace("-", "_"))
    kind = CODES.get(code, ProblemType(status, phrase))
    return _document(kind, code, f"{kind.title}.")
