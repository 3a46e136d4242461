"""What Schemathesis does not have itself: a check, short waits, NDJSON and mails.

It imports this module (SCHEMATHESIS_HOOKS).
"""

from typing import Any
from uuid import uuid4

import schemathesis

IDEMPOTENCY_KEY = "Idempotency-Key"


@schemathesis.check
def refused_only_as_documented(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case[Any]
) -> bool | None:
    """A request that matches the schema is refused as invalid only with a code that the document lists for it."""
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code not in (400, 422):
        return None
    refusal = response.json()
    code = refusal["code"] if "code" in refusal else refusal["detail"].rpartition("(")[2].rstrip(")")  # SCIM's
    documented = case.operation.schema.raw_schema["x-beyond-schema"]
    assert code in documented, f"{code}: {refusal}"
    return None


@schemathesis.hook
def before_call(ctx: schemathesis.HookContext, case: schemathesis.Case[Any], kwargs: dict[str, Any]) -> None:
    """Waits for a delivery that does not exist end after a moment; a stream is read for a second. An Idempotency-Key is
    new for each request: with one that was used the handler is not called.
    """
    if case.meta is not None and case.meta.generation.mode.is_positive and IDEMPOTENCY_KEY in case.headers:
        case.headers[IDEMPOTENCY_KEY] = uuid4().hex
    if case.path.endswith("/events"):
        kwargs["timeout"] = 1
    if case.path == "/v1/track" and isinstance(case.body, dict) and _is_long(case.body.get("timeout", 10)):
        case.body = {**case.body, "timeout": SHORT}


def _is_long(seconds: object) -> bool:
    return isinstance(seconds, (int, float)) and SHORT < seconds <= 10


SHORT = 0.1


@schemathesis.serializer("application/x-ndjson", "message/rfc822")
def as_text(ctx: schemathesis.SerializationContext, value: Any) -> bytes:
    """A body of lines, and a mail, is a text."""
    return value if isinstance(value, bytes) else str(value).encode()
