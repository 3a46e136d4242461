"""The secret with which a provider proves itself."""

from hmac import compare_digest

from core.errors import Forbidden, NotFound


def check_secret(given: object, expected: str) -> None:
    """Check the secret of a provider. Raises NotFound INBOUND_NOT_SET_UP, Forbidden INBOUND_SECRET_WRONG."""
    if not expected:
        raise NotFound("INBOUND_NOT_SET_UP", "Nothing is received here: no secret is set for this provider.")
    text = given if isinstance(given, str) else ""
    if not compare_digest(text.encode(errors="replace"), expected.encode()):
        raise Forbidden("INBOUND_SECRET_WRONG", "The secret is wrong.")
