"""Keys of deliveries: histories, order keys, quotas, indexes."""

from core.redis.keys.key import Key, Lifetime

DELIVERIES = (
    Key(
        "history",
        "history:{s}:<suffix>",
        "hash",
        Lifetime.RETENTION,
        "the delivery: sender, text, content, recipients, state, counters",
    ),
    Key(
        "outcomes",
        "history:{s}:<suffix>:outcomes",
        "hash",
        Lifetime.RETENTION,
        "`<recipient>:<channel>[:<n-th further contact>]` → status|reason|at ms|version|attempts|reference; "
        "then 1E and what the provider said, if it is known; then, if the channel could not show all of the content, "
        "1F and a list of what was not shown; before both, 1D and in how many parts it was paid",
    ),
    Key(
        "exchanges",
        "history:{s}:<suffix>:exchanges",
        "hash",
        Lifetime.TTL,
        "as in the outcomes → the attempts that failed, with each call to the provider and its words: seven days",
    ),
    Key(
        "reached",
        "history:{s}:<suffix>:reached",
        "string",
        Lifetime.RETENTION,
        "bitmap by recipient number: reached in any channel",
    ),
    Key(
        "order",
        "delivery:{s}:<suffix>",
        "string",
        Lifetime.TTL,
        "the order key; present while pending, gone when due or cancelled; its value has no meaning",
    ),
    Key(
        "reserved",
        "reserved:{s}:<suffix>",
        "string",
        Lifetime.TTL,
        "a history key issued before its delivery: the tenant",
    ),
    Key(
        "quota",
        "quota:{s}:<tenant>:<sender>",
        "zset",
        Lifetime.TTL,
        "the last deliveries of a sender with a quota by ms: `<unix ns> <limit> <period ms>`",
    ),
    Key("idempotency", "idempotency:{s}:<tenant>:<request>", "string", Lifetime.TTL, "the first response to a write"),
    Key(
        "choices",
        "choices:{s}:<tenant>:<channel>:<address>",
        "string",
        Lifetime.TTL,
        "the numbered choices of the last message to an address without buttons: `[{text, data}, …]`",
    ),
    Key(
        "buttons",
        "buttons:{s}:<tenant>:<channel>:<address>",
        "string",
        Lifetime.TTL,
        "the buttons below the newest message of an address that has some, whose words press them, too: "
        "`[{text, data}, …]`",
    ),
    Key(
        "day_message",
        "daily:{s}:<tenant>:<channel>:<address>",
        "hash",
        Lifetime.TTL,
        "the parts of an address's message of the day: `first` → ms of the first that waits, `waiting` → how many do; "
        "`part:<name>` → text and more as JSON, `taken:<name>` → ms at which a courier began to send it, `ended:<name>`"
        " and `deferred:<name>` → outcome as JSON",
    ),
    Key(
        "answer_numbers",
        "questions:{s}:numbers:<tenant>:<channel>:<address>",
        "hash",
        Lifetime.TTL,
        "`<shard>.<code>.<recipient number>` of each question that an address answers by numbers → these, its message,"
        " and the ms at which they are free again, as JSON",
    ),
    Key(
        "asked",
        "questions:{s}:asked:<code>",
        "string",
        Lifetime.RETENTION,
        "the delivery whose question has this code, by which buttons name it: its suffix",
    ),
    Key(
        "references",
        "references:{s}:<channel>:<account>:<peer>",
        "zset",
        Lifetime.TTL,
        "the newest messages of a provider's dialog that are not read: entry by message number; `read`: the last mark",
    ),
    Key(
        "provider_ids",
        "couriers:{s}:ids:<channel>:<account>",
        "hash",
        Lifetime.FOREVER,
        "name → the provider's id of what a courier has made under it, such as the topic of a person in the group of an"
        " office",
    ),
    Key(
        "listed",
        "deliveries:{s}:listed:<tenant>",
        "zset",
        Lifetime.RETENTION,
        "kept deliveries of a tenant by creation ms",
    ),
    Key(
        "live",
        "deliveries:{s}:live:<tenant>",
        "zset",
        Lifetime.WORK,
        "unfinished deliveries of a tenant by creation ms",
    ),
    Key(
        "retained",
        "deliveries:{s}:retained",
        "zset",
        Lifetime.RETENTION,
        "finished deliveries by the ms at which they are dropped",
    ),
    Key("events", "events:{s}", "stream", Lifetime.FOREVER, "state changes; trimmed by length"),
    Key(
        "series",
        "series:{s}:<tenant>",
        "hash",
        Lifetime.FOREVER,
        "id of a series of deliveries → its message, moments and end as JSON",
    ),
    Key(
        "costs",
        "costs:{s}:<tenant>:<month>",
        "hash",
        Lifetime.TTL,
        "what was sent in a month of UTC, kept for three years: `messages<1F>channel<1F><1F>sender` and, if it is paid "
        "in parts, `parts<1F>channel<1F>price<1F>sender` → how many",
    ),
    Key(
        "templates",
        "templates:{s}:<tenant>:<whose>",
        "hash",
        Lifetime.FOREVER,
        "id of a template → its title and message as JSON; of `user:<id>`, or of `all` in the tenant",
    ),
)
