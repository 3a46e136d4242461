"""Telegram's MTProto server, played well enough that an unmodified Telethon signs in and sends.

    server = TelegramServer(World(), Path("data/telegram"))
    await server.start()
    trust(server.public_key_pem)                          # telethon.crypto.rsa.add_key(pem, old=False)
    session = StringSession()
    point(session, server.host, server.port)              # session.set_dc(2, host, port)
    client = TelegramClient(session, 1, "any hash")
    await client.start(bot_token="4242:any-token-will-do")   # or phone="+79990000042", code_callback=lambda: "22222"

The way of a packet: `connection` → `framing` → `envelope` → `messages` → `dispatch` → the method's module (`sending`
and `faults`, `people`, `signing_in`, `news`, `config`) → `replies` → back. `handshake` makes the keys, `vault` keeps
them, `accounts` and `platform` are what all connections share. Everybody exists: see `persons`.
"""

from sandbox.telegram.client_trust import point, trust
from sandbox.telegram.server import TelegramServer

__all__ = ["TelegramServer", "point", "trust"]
