"""Errors of SCIM (RFC 7644, section 3.12): what a client of SCIM gets in place of a problem document."""

import json

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler

from core.errors import Invalid
from delivery.http.responses import problems

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
    is_scim = request.path.startswith(f"{SCIM_BASE}/") and response.content_type == problems.CONTENT_TYPE
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
