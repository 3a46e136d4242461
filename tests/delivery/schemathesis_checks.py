"""What Schemathesis does not have itself: a check, and NDJSON. It imports this module (SCHEMATHESIS_HOOKS)."""

from typing import Any

import schemathesis


@schemathesis.check
def refused_only_as_documented(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case[Any]
) -> bool | None:
    """A request that matches the schema is refused as invalid only with a code that the document lists for it."""
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code not in (400, 422):
        return None
    code = response.json()["code"]
    documented = case.operation.schema.raw_schema["x-beyond-schema"]
    assert code in documented, f"{code}: {response.json()}"
    return None


@schemathesis.serializer("application/x-ndjson")
def as_lines(ctx: schemathesis.SerializationContext, value: Any) -> bytes:
    """A body of lines is a text."""
    return value if isinstance(value, bytes) else str(value).encode()
