"""Opens the courier: a session, a connection, an account that Telegram knows. Every failure says what mends it."""

from pathlib import Path
from typing import Any

from telethon.crypto import rsa
from telethon.errors import AuthKeyError, AuthKeyNotFound, FloodWaitError, RPCError, UserMigrateError

from core.courier import SetupError
from couriers.telegram import answers, session
from couriers.telegram.client import Client
from couriers.telegram.courier import Telegram
from couriers.telegram.line import Line
from couriers.telegram.peers import Peers
from couriers.telegram.phones import Phones
from couriers.telegram.session import Held
from couriers.telegram.settings import Settings


async def open(settings: Settings, directory: Path) -> Telegram:  # noqa: A001 - the port's name: couriers are opened
    """Sign in and return the courier. `directory` keeps the sessions; who can read it can be the account.

    Raises SetupError when Telegram cannot be reached or does not take the account.
    """
    held = _hold(settings, directory)
    try:
        return await _opened(settings, held)
    except BaseException:
        held.release()
        raise


def _hold(settings: Settings, directory: Path) -> Held:
    if settings.bot_token is not None:
        held = session.of_bot(directory, settings.bot_token)
    else:
        held = session.of_user(directory, settings.session or "")
    if (address := settings.address()) is not None:
        _trust(settings.key())
        session.at_server(held.session, *address)
    return held


def _trust(pem: str) -> None:
    try:
        rsa.add_key(pem, old=False)
    except (ValueError, AttributeError) as error:
        raise SetupError("ADA_TELEGRAM_SERVER_KEY is not an RSA public key in PKCS#1 PEM") from error


async def _opened(settings: Settings, held: Held) -> Telegram:
    try:
        return await _signed_in(settings, held)
    except (AuthKeyNotFound, AuthKeyError):
        if settings.bot_token is None:
            raise SetupError("Telegram does not know this session any more: sign in anew") from None
    # A bot needs no person to sign in anew: a key that Telegram has forgotten is replaced.
    held.session.auth_key = None
    return await _signed_in(settings, held)


async def _signed_in(settings: Settings, held: Held) -> Telegram:
    client = _client(settings, held)
    line = Line(client, settings.timeout)
    try:
        await line.up()
        account = await line.told(client.get_me()) or await _new_account(client, line, settings)
        held.session.save()
        return Telegram(str(account.id), line, _peers(client, line, held, account), held)
    except BaseException as error:
        await line.close()
        if isinstance(error, RPCError | OSError) and not isinstance(error, AuthKeyError):
            raise SetupError(_advice(error)) from error
        raise


def _peers(client: Client, line: Line, held: Held, account: Any) -> Peers:
    return Peers(client, line.ask, Phones(held.path.with_suffix(".phones")), bot=bool(account.bot))


def _client(settings: Settings, held: Held) -> Client:
    address = settings.address()
    return Client(
        held.session,
        settings.api_id,
        settings.api_hash,
        use_ipv6=address is not None and ":" in address[0],
        timeout=int(settings.timeout.total_seconds()),
        request_retries=0,  # one attempt is one request
        connection_retries=2,  # one key exchange in 256 fails: Telethon drops a leading zero of the key
        retry_delay=0,
        auto_reconnect=False,  # see line.py
        flood_sleep_threshold=0,  # else it sleeps up to a minute inside of the call
        raise_last_call_error=True,  # else a bare ValueError
        receive_updates=False,
    )


async def _new_account(client: Client, line: Line, settings: Settings) -> Any:
    if settings.bot_token is None:
        raise SetupError("nobody is signed in with this session: sign in anew and set ADA_TELEGRAM_SESSION")
    try:
        return await line.told(client.sign_in(bot_token=settings.bot_token))
    except UserMigrateError:  # the bot lives in another data centre, where Telethon has gone meanwhile
        return await line.told(client.sign_in(bot_token=settings.bot_token))


def _advice(error: RPCError | OSError) -> str:
    match error:
        case FloodWaitError():
            return f"Telegram lets this account sign in again in {error.seconds} s: wait that long"
        case RPCError():
            return f"Telegram answers {answers.name_of(error)}: check ADA_TELEGRAM_API_ID, _API_HASH and the account"
    return f"Telegram cannot be reached ({error}): check the network and ADA_TELEGRAM_SERVER"
