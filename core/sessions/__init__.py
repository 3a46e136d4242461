"""Sessions of the web console: who is signed in, by a cookie whose secret is stored only as a hash.

    an API key, a mailed code or a link of the bot ─▶ Sessions.begin_… ─▶ a secret ─▶ Sessions.find, at each request

    an account of an identity provider ─▶ OutsideAccounts ─▶ a session of its person

    a person who is signed in ─▶ PersonalKeys ─▶ a secret ─▶ Sessions.find_personal_key

Guarantees: a session has the rights of its key or of its person as they are now, because both are read at each request;
it ends with the key, with the person, with its time, or when somebody signs out.

Neighbours: `core.admission` has the keys, `core.directory` the people. `delivery/` and `scenarios/` call it.
"""

from core.sessions.links import DeviceLinks, SignInCodes, SignInLinks
from core.sessions.outside_accounts import OutsideAccounts
from core.sessions.personal_keys import PersonalKeys
from core.sessions.sessions import Identity, Sessions

__all__ = ["DeviceLinks", "Identity", "OutsideAccounts", "PersonalKeys", "Sessions", "SignInCodes", "SignInLinks"]
