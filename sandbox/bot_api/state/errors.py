"""The errors of the Bot API. Their HTTP status is their code."""

from typing import Any


class ApiError(Exception):
    """A response `{"ok": false, …}`. `parameters`: ResponseParameters, such as retry_after."""

    def __init__(self, code: int, description: str, **parameters: int) -> None:
        super().__init__(description)
        self.code, self.parameters = code, parameters

    def body(self) -> dict[str, Any]:
        shown = {"ok": False, "error_code": self.code, "description": str(self)}
        return {**shown, "parameters": self.parameters} if self.parameters else shown


def bad_request(text: str) -> ApiError:
    return ApiError(400, f"Bad Request: {text}")


def forbidden(text: str) -> ApiError:
    return ApiError(403, f"Forbidden: {text}")


def too_many_requests(seconds: int) -> ApiError:
    return ApiError(429, f"Too Many Requests: retry after {seconds}", retry_after=seconds)


def migrated(to: int) -> ApiError:
    return ApiError(400, "Bad Request: group chat was upgraded to a supergroup chat", migrate_to_chat_id=to)


CHAT_NOT_FOUND = "chat not found"
UNAUTHORIZED = "Unauthorized"
CONFLICTING_POLL = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
WEBHOOK_IS_ACTIVE = (
    "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
)
NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same as a current "
    "content and reply markup of the message"
)
QUERY_TOO_OLD = "query is too old and response timeout expired or query ID is invalid"
