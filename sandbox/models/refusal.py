"""A request that the service refuses."""


class Refusal(Exception):
    """`status` is that of HTTP; the text explains it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


def bad_request(text: str) -> Refusal:
    return Refusal(400, text)
