"""Opens the courier: locks a session, connects, signs in. Every SetupError names what to change."""

from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from telethon.crypto import rsa
from telethon.errors import (
    AccessTokenExpiredError,
    AccessTokenInvalidError,
    AuthKeyError,
    AuthKeyNotFound,
    FloodWaitError,
    RPCError,
    UserMigrateError,
)

from couriers.sending import SetupError
from couriers.telegram import outcomes
from couriers.telegram.connection import (
    AccountClient,
    LockedSession,
    TelegramConnection,
    bot_session,
    use_server,
    user_session,
)
from couriers.telegram.courier import Telegram
from couriers.telegram.peers import Peers, PhoneCache
from couriers.telegram.receive import MtprotoBot


@dataclass(frozen=True)
class Settings:
    """Set `bot_token` or `session`, not both; `server` and `server_key` only for a test server."""

    api_id: int
    api_hash: str = field(repr=False)
    bot_token: str | None = field(default=None, repr=False)
    session: str | None = field(default=None, repr=False)  # a session string, or the name of a file in the directory
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


__all__ = ["Settings", "open"]


async def open(settings: Settings, directory: Path) -> Telegram:  # noqa: A001 - the interface's name
    """Sign in and return the courier. `directory` keeps the sessions; reading them gives full access to the account.

    Raises SetupError if Telegram cannot be reached or refuses the account.
    """
    session = _lock_session(settings, directory)
    try:
        return await _open(settings, session)
    except BaseException:  # whatever it is, also a cancellation: another start needs the session
        session.release()
        raise


def _lock_session(settings: Settings, directory: Path) -> LockedSession:
    if settings.bot_token is not None:
        session = bot_session(directory, settings.bot_token)
    else:
        session = user_session(directory, settings.session or "")
    if (address := settings.address()) is not None:
        _trust_server_key(settings.key())
        use_server(session.session, *address)
    return session


def _trust_server_key(pem: str) -> None:
    try:
        rsa.add_key(pem, old=False)
    except (ValueError, AttributeError) as error:
        raise SetupError("ADA_TELEGRAM_SERVER_KEY is not an RSA public key in PKCS#1 PEM") from error


async def _open(settings: Settings, session: LockedSession) -> Telegram:
    try:
        return await _sign_in(settings, session)
    except (AuthKeyNotFound, AuthKeyError):
        if settings.bot_token is None:
            raise SetupError("Telegram does not know this session any more: sign in again") from None
    # A bot signs in without a person: a key that Telegram has forgotten is replaced.
    session.session.auth_key = None
    return await _sign_in(settings, session)


async def _sign_in(settings: Settings, session: LockedSession) -> Telegram:
    client = _client(settings, session)
    connection = TelegramConnection(client, settings.timeout)
    try:
        await connection.connect()
        account = await connection.call(client.get_me()) or await _new_account(client, connection, settings)
        session.session.save()
        phones = PhoneCache(session.path.with_suffix(".phones"))
        peers = Peers(client, connection.request, phones, bot=bool(account.bot))
        name = str(account.id)
        if account.bot:
            bot = MtprotoBot(name, client, connection, peers)
            return Telegram(name, connection, peers, session, bot=bot)
        return Telegram(name, connection, peers, session, client.read_marks, client.received)
    except BaseException as error:  # whatever it is, also a cancellation: the connection is closed
        await connection.close()
        if isinstance(error, RPCError | OSError) and not isinstance(error, AuthKeyError):
            raise SetupError(_advice(error)) from error
        raise


def _client(settings: Settings, session: LockedSession) -> AccountClient:
    address = settings.address()
    return AccountClient(
        session.session,
        settings.api_id,
        settings.api_hash,
        use_ipv6=address is not None and ":" in address[0],
        timeout=int(settings.timeout.total_seconds()),
        request_retries=0,  # one attempt is one request
        connection_retries=2,  # one key exchange in 256 fails: Telethon drops a leading zero of the key
        retry_delay=0,
        auto_reconnect=False,  # see connection.py
        flood_sleep_threshold=0,  # otherwise Telethon sleeps up to a minute inside the call
        raise_last_call_error=True,  # otherwise a bare ValueError
        is_bot=settings.bot_token is not None,
    )


async def _new_account(client: AccountClient, connection: TelegramConnection, settings: Settings) -> Any:
    if settings.bot_token is None:
        raise SetupError("this session is not signed in: sign in again and set ADA_TELEGRAM_SESSION")
    try:
        return await connection.call(client.sign_in(bot_token=settings.bot_token))
    except UserMigrateError:  # the bot belongs to another data centre; Telethon has connected to it meanwhile
        return await connection.call(client.sign_in(bot_token=settings.bot_token))


def _advice(error: RPCError | OSError) -> str:
    match error:
        case FloodWaitError():
            return f"Telegram lets this account sign in again in {error.seconds} s: wait that long"
        case AccessTokenInvalidError() | AccessTokenExpiredError():
            return f"Telegram answers {outcomes.name_of(error)}: check ADA_TELEGRAM_BOT_TOKEN"
        case RPCError():
            return f"Telegram answers {outcomes.name_of(error)}: check ADA_TELEGRAM_API_ID, _API_HASH and the account"
    return f"Telegram cannot be reached ({error}): check the network and ADA_TELEGRAM_SERVER"
