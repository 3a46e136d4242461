"""Keys of people: the directory and its imports, linked contacts, uploads; and of access: API keys, sessions, the
action log, sign-in to Ada and to outside services.
"""

from core.redis.keys.key import Key, Lifetime

PEOPLE = (
    Key("users", "directory:{s}:users:<tenant>", "hash", Lifetime.FOREVER, "id of a person → its record as JSON"),
    Key("userids", "directory:{s}:userids:<tenant>", "zset", Lifetime.FOREVER, "ids of the people, sorted as text"),
    Key(
        "names",
        "directory:{s}:names:<tenant>",
        "zset",
        Lifetime.FOREVER,
        "`<word of a name> <id>` of the people, sorted as text",
    ),
    Key("emails", "directory:{s}:emails:<tenant>", "hash", Lifetime.FOREVER, "e-mail address → id of the person"),
    Key(
        "contacts",
        "directory:{s}:contacts:<tenant>",
        "hash",
        Lifetime.FOREVER,
        "`<channel>:<address>` → id of the person, addresses in their canonical form",
    ),
    Key("role", "directory:{s}:role:<tenant>:<role>", "zset", Lifetime.FOREVER, "ids of the people with a role"),
    Key(
        "collections",
        "directory:{s}:collections:<tenant>:<kind>",
        "hash",
        Lifetime.FOREVER,
        "id of a group or supergroup (the kind) → its record as JSON, without its members",
    ),
    Key(
        "collectionids",
        "directory:{s}:collectionids:<tenant>:<kind>",
        "zset",
        Lifetime.FOREVER,
        "ids of the groups or of the supergroups, sorted as text",
    ),
    Key(
        "members",
        "directory:{s}:members:<tenant>:<kind>:<id>",
        "zset",
        Lifetime.FOREVER,
        "people of a group, or groups of a supergroup",
    ),
    Key(
        "member_of",
        "directory:{s}:member_of:<tenant>:<kind>:<member>",
        "zset",
        Lifetime.FOREVER,
        "groups of a person, or supergroups that have a group",
    ),
    Key(
        "owned",
        "directory:{s}:owned:<tenant>:<user>",
        "zset",
        Lifetime.FOREVER,
        "`group:<id>` and `supergroup:<id>` that a person owns",
    ),
    Key(
        "owners",
        "directory:{s}:owners:<tenant>:<object>",
        "zset",
        Lifetime.FOREVER,
        "people who own `group:<id>` or `supergroup:<id>`",
    ),
    Key(
        "import",
        "directory:{s}:import:<tenant>",
        "hash",
        Lifetime.WORK,
        "the import of a tenant: token, state, kind, rows, done, pages, next, beat; expires unless it is being written",
    ),
    Key(
        "importpages",
        "directory:{s}:importpages:<tenant>",
        "hash",
        Lifetime.WORK,
        "number of a page → what an import will write, as MessagePack",
    ),
    Key("imports", "directory:{s}:imports", "zset", Lifetime.WORK, "tenants that have an import"),
    Key(
        "imported",
        "directory:{s}:imported:<tenant>:<token>",
        "string",
        Lifetime.TTL,
        "an import that was written; its process may repeat the last call",
    ),
    Key(
        "link",
        "link:{s}:<tenant>:<link>",
        "hash",
        Lifetime.TTL,
        "the code mailed for a contact: hash, expires, guesses, call, used; user, channel, address",
    ),
    Key(
        "linkmails",
        "linkmails:{s}:<tenant>:<of>",
        "string",
        Lifetime.TTL,
        "number of codes mailed in an hour for a link, to `user:<id>`, or to `sign-in:<hash of an address>`",
    ),
    Key(
        "upload",
        "uploads:{s}:file:<tenant>:<id>",
        "hash",
        Lifetime.TTL,
        "an uploaded file: name, bytes, parts; its id is a hash of name and content",
    ),
    Key("uploadpart", "uploads:{s}:part:<tenant>:<id>:<number>", "string", Lifetime.TTL, "256 KiB of an uploaded file"),
    Key(
        "uploadlist",
        "uploads:{s}:list:<tenant>",
        "zset",
        Lifetime.TTL,
        "`<id>:<bytes>` of the uploaded files of a tenant by the ms at which they expire",
    ),
)


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
