"""The problem document, which every refusal returns."""

from msgspec import UNSET, Struct, UnsetType


class FieldError(Struct):
    """One error of the request. `path`: "recipients.0.id". In a CSV file also `row`, as a spreadsheet shows it (the
    header is row 1), and `column`, its name.
    """

    path: str
    code: str
    message: str
    row: int | UnsetType = UNSET
    column: str | UnsetType = UNSET


class ProblemDocument(Struct):
    """A problem document (RFC 9457). `code` is stable; `errors` lists every error of the request."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    errors: list[FieldError] | UnsetType = UNSET
