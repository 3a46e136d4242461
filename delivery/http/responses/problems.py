"""Problem documents (RFC 9457): every response that is not 2xx or 3xx is one, with a stable `code`.

`problem_types.CODES` is the vocabulary. A code of core that is not in it gets the status of its class of error.
A client of SCIM gets an error of RFC 7644, section 3.12, in place of a problem document.
"""

import json
from collections.abc import Mapping, Sequence
from http import HTTPStatus

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler
from msgspec import UNSET, Struct, UnsetType, to_builtins

from core.directory.importing import ImportRefused, RowError
from core.errors import (
    Conflict,
    Forbidden,
    Invalid,
    InvalidForRecipient,
    InvalidMany,
    NotFound,
    Refused,
    StoreFull,
    StoreRefuses,
    TooMany,
)
from delivery.http.responses.problem_types import CODES, ProblemType

CONTENT_TYPE = "application/problem+json"
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


class FieldError(Struct):
    """One error of the request. `path`: "recipients.0.id". In a CSV file also `row`, as a spreadsheet shows it (the
    header is row 1), and `column`, its name. `value`: of the cell; if a personal text cannot be filled, the recipient,
    and `column` is the field.
    """

    path: str
    code: str
    message: str
    row: int | UnsetType = UNSET
    column: str | UnsetType = UNSET
    value: str | UnsetType = UNSET


class ProblemDocument(Struct):
    """A problem document (RFC 9457). `code` is stable; `errors` lists every error of the request."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[FieldError] | UnsetType = UNSET


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
    return _document(CODES[code], code, detail)


def problem_of_refusal(refused: Refused) -> ProblemDocument:
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
    if isinstance(refused, InvalidMany):
        return [_one_of_many(error) for error in refused.errors]
    return [FieldError(refused.path, refused.code, refused.detail)] if refused.path else ()


def _row_error(error: RowError) -> FieldError:
    path, value = f"{error.row}.{error.column}", error.value or UNSET
    return FieldError(path, error.code, error.message, error.row, error.column, value)


def _one_of_many(error: Invalid) -> FieldError:
    if not isinstance(error, InvalidForRecipient):
        return FieldError(error.path, error.code, error.detail)
    row, field = error.row or UNSET, error.field or UNSET
    return FieldError(error.path, error.code, error.detail, row, field, error.name)


def _document(kind: ProblemType, code: str, detail: str, errors: Sequence[FieldError] = ()) -> ProblemDocument:
    return ProblemDocument(f"/docs#{code}", kind.title, kind.status, detail, code, list(errors) or UNSET)


_HTTP_CODES = {400: "REQUEST_MALFORMED", 404: "ROUTE_NOT_FOUND", 405: "METHOD_NOT_ALLOWED", 413: "BODY_TOO_LARGE"}


def problem_of_status(status: int) -> ProblemDocument:
    """Return the problem for a request that aiohttp refused."""
    phrase = HTTPStatus(status).phrase
    code = _HTTP_CODES.get(status, phrase.upper().replace(" ", "_").replace("-", "_"))
    kind = CODES.get(code, ProblemType(status, phrase))
    return _document(kind, code, f"{kind.title}.")


SCIM_TYPE = "application/scim+json"
SCIM_TYPES = frozenset({"application/scim+json", "application/json"})
SCIM_BASE = "/scim/v2"
_ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"

SCIM_CODES = {
    "invalidFilter": "SCIM_FILTER_WRONG",
    "invalidPath": "SCIM_PATH_WRONG",
    "invalidSyntax": "SCIM_SYNTAX_WRONG",
    "invalidValue": "SCIM_VALUE_WRONG",
    "mutability": "SCIM_NOT_CHANGEABLE",
    "noTarget": "SCIM_TARGET_MISSING",
}
"""scimType → the code of its refusal."""
_KEYWORDS = {
    **{code: keyword for keyword, code in SCIM_CODES.items()},
    **dict.fromkeys(("EMAIL_TAKEN", "CONTACT_TAKEN", "EXTERNAL_ID_TAKEN", "GROUP_EXISTS"), "uniqueness"),
    **dict.fromkeys(("BODY_MALFORMED", "JSON_MALFORMED", "JSON_NOT_UTF8", "JSON_BYTE_ORDER_MARK"), "invalidSyntax"),
    **dict.fromkeys(("JSON_DUPLICATE_KEY", "JSON_NOT_A_NUMBER", "JSON_TOO_DEEP"), "invalidSyntax"),
}


def scim_refusal(keyword: str, detail: str) -> Invalid:
    """Return the refusal for a scimType."""
    return Invalid(SCIM_CODES.get(keyword, SCIM_CODES["invalidValue"]), detail)


@web.middleware
async def respond_as_scim(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Turn problem documents of the addresses of SCIM into errors of SCIM. Must be outside `respond_to_errors`."""
    response = await handler(request)
    is_scim = request.path.startswith(f"{SCIM_BASE}/") and response.content_type == CONTENT_TYPE
    if not is_scim or not isinstance(response, web.Response) or not isinstance(response.body, bytes):
        return response
    found = json.loads(response.body)
    status = 400 if found["status"] == 422 else found["status"]  # SCIM does not know 422
    keyword = _KEYWORDS.get(found["code"], "invalidValue" if status == 400 else "")
    document = {"schemas": [_ERROR], "status": str(status), **({"scimType": keyword} if keyword else {})}
    detail = f"{found['detail']} ({found['code']})"
    response.set_status(status)
    response.body = json.dumps({**document, "detail": detail}, separators=(",", ":")).encode()
    response.headers[hdrs.CONTENT_TYPE] = SCIM_TYPE
    return response
