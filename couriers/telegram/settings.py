"""The settings of Telegram. The fields are ADA_TELEGRAM_API_ID and so on."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from couriers.sending import SetupError


@dataclass(frozen=True)
class Settings:
    """Set `bot_token` or `session`, not both; `server` and `server_key` only for a test server."""

    api_id: int
    api_hash: str
    bot_token: str | None = None
    session: str | None = None  # a session string, or the name of a session file in the courier's directory
    server: str | None = None  # "host:port"
    server_key: str | None = None  # its public RSA key: the PEM text, or the path of a file with it
    timeout: timedelta = timedelta(seconds=15)  # of one request; after it the outcome is unknown

    def __post_init__(self) -> None:
        if (self.bot_token is None) == (self.session is None):
            raise SetupError("Telegram needs an account: set ADA_TELEGRAM_BOT_TOKEN or ADA_TELEGRAM_SESSION, not both")
        if (self.server is None) != (self.server_key is None):
            raise SetupError("a test server of Telegram needs both ADA_TELEGRAM_SERVER and ADA_TELEGRAM_SERVER_KEY")

    def address(self) -> tuple[str, int] | None:
        """Return host and port of the test server, None for Telegram itself. Raises SetupError."""
        if self.server is None:
            return None
        host, _, port = self.server.rpartition(":")
        if not host or not port.isdecimal():
            raise SetupError(f"ADA_TELEGRAM_SERVER={self.server} is not host:port")
        return host.strip("[]"), int(port)

    def key(self) -> str:
        """Return the public key of the test server as PEM. Raises SetupError."""
        given = self.server_key or ""
        if given.lstrip().startswith("-----BEGIN"):
            return given
        try:
            return Path(given).read_text(encoding="ascii")
        except (OSError, ValueError) as error:
            raise SetupError("ADA_TELEGRAM_SERVER_KEY is neither a PEM text nor a readable file") from error
