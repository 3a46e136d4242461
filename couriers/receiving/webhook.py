"""A webhook: a service posts updates to the HTTP API, which puts them into the queue."""

import re
from dataclasses import dataclass, field
from typing import ClassVar

from core.errors import SetupError

_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")


@dataclass(frozen=True)
class WebhookReceiver:
    """`url`: the HTTP API as the service reaches it, without a path. `secret`: what the service proves itself with."""

    path: ClassVar[str]
    url_setting: ClassVar[str]
    secret_setting: ClassVar[str]
    shortest_secret: ClassVar[int] = 1

    url: str
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        """Check the URL and the secret. Raises SetupError."""
        if not self.url.startswith("https://") and not self.url.startswith("http://"):
            raise SetupError(f"{self.url_setting} is not a URL: it must begin with https://")
        if not _SECRET.fullmatch(self.secret) or len(self.secret) < self.shortest_secret:
            wanted = f"{self.shortest_secret} to 256 letters, digits, _ and -"
            raise SetupError(f"{self.secret_setting} must have {wanted} for a webhook")

    @property
    def address(self) -> str:
        """The address to which the service posts."""
        return self.url.rstrip("/") + self.path
