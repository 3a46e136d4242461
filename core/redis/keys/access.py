"""Keys of access: API keys, sessions, the action log, sign-in to Ada and to outside services."""

from core.redis.keys.key import Key, Lifetime

ACCESS = (
    Key(
        "access",
        "access:{s}:<hash>",
        "hash",
        Lifetime.FOREVER,
        "an API key by the hash of its secret: id, tenant, scopes, name",
    ),
    Key("accesses", "access:{s}", "hash", Lifetime.FOREVER, "API key id → hash of its secret"),
    Key(
        "uses",
        "accesses:{s}:used",
        "hash",
        Lifetime.FOREVER,
        "API key id → when it was used last, Unix ms, to a minute",
    ),
    Key(
        "signincode",
        "signincode:{s}:<code_id>",
        "hash",
        Lifetime.TTL,
        "a code mailed to sign in: tenant, user, hash, guesses, expires, used",
    ),
    Key(
        "actions",
        "actions:{s}:<tenant>",
        "stream",
        Lifetime.FOREVER,
        "what was changed for others: who, what, how many, why; the last 20,000",
    ),
    Key("signinlink", "signinlink:{s}:<hash>", "string", Lifetime.TTL, "the person that a link of the bot signs in"),
    Key(
        "session", "session:{s}:<hash>", "string", Lifetime.TTL, "who is signed in, by the hash of the cookie's secret"
    ),
    Key(
        "sessions",
        "sessions:{s}:<tenant>:<whose>",
        "zset",
        Lifetime.TTL,
        "hashes of the sessions of `user:<id>` or `key:<id>` by the ms at which they end",
    ),
    Key(
        "sign_in_link",
        "sign-in:{s}:link:<digest>",
        "string",
        Lifetime.TTL,
        "whose sign-in an address begins, encrypted",
    ),
    Key(
        "sign_in_state",
        "sign-in:{s}:state:<digest>",
        "string",
        Lifetime.TTL,
        "a sign-in that waits for its callback, encrypted",
    ),
    Key(
        "sign_in_begun",
        "sign-in:{s}:begun:<tenant>:<user>",
        "set",
        Lifetime.TTL,
        "the keys of a user's sign-ins that have begun",
    ),
    Key(
        "sign_in_tokens",
        "sign-in:{s}:tokens:<tenant>:<user>",
        "hash",
        Lifetime.FOREVER,
        "outside service → the tokens of a user for it, encrypted",
    ),
    Key(
        "sign_in_keys",
        "sign-in:{s}:keys",
        "set",
        Lifetime.FOREVER,
        "the fingerprints of the keys with which tokens were encrypted",
    ),
    Key("sign_in_refresh", "sign-in:{s}:refresh:<key>", "string", Lifetime.TTL, "the process that refreshes tokens"),
)
