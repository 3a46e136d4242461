"""How an unmodified Telethon is pointed at a server that is not Telegram's: two calls of its own."""

from telethon.crypto import rsa
from telethon.sessions.abstract import Session

from sandbox.telegram.config import DC


def trust(public_key_pem: str) -> None:
    """Let this process's Telethon accept the server's RSA key, beside Telegram's own. Harmless when repeated."""
    rsa.add_key(public_key_pem.encode(), old=False)


def point(session: Session, host: str, port: int) -> None:
    """Let a session connect to the server. A session with an authorization key for another server loses it."""
    session.set_dc(DC, host, port)
