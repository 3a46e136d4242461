"""Keys of the installation: processes, channels, figures, webhooks, functions, settings, damaged data."""

from core.redis.keys.key import Key, Lifetime

INSTALLATION = (
    Key(
        "last_words",
        "figures:{s}:words",
        "hash",
        Lifetime.TTL,
        "`<channel>:<status>|<reason>` → what the provider said last, for seven days",
    ),
    Key(
        "outcome_counts",
        "figures:{s}:outcomes",
        "hash",
        Lifetime.FOREVER,
        "`<channel>:<status>|<reason>` → how many outcomes were written with it since the beginning",
    ),
    Key(
        "figures",
        "figures:{s}:samples:<step>",
        "hash",
        Lifetime.FOREVER,
        "a ring of samples of all counters, one for each step of this many seconds: number in the ring → ms, counters",
    ),
    Key("figures_turn", "figures:{s}:turn:<step>:<n>", "string", Lifetime.TTL, "the process that takes this sample"),
    Key(
        "damaged",
        "damaged:{s}:<key>",
        "any",
        Lifetime.TTL,
        "a key in whose place was something of another type; the audit reports it, and its repair lets it expire",
    ),
    Key(
        "processes",
        "processes:{s}:entries",
        "hash",
        Lifetime.FOREVER,
        "id of a process → what it notes about itself, as JSON; whichever process reads them removes the old ones",
    ),
    Key("audit", "audit:{s}:run", "string", Lifetime.TTL, "the last audit that was started over HTTP, as JSON"),
    Key(
        "audit_findings", "audit:{s}:findings", "list", Lifetime.TTL, "the first 1000 violations that it found, as JSON"
    ),
    Key("audit_lock", "audit:{s}:lock", "string", Lifetime.TTL, "the audit that runs: one at a time"),
    Key("channels", "channels:{s}", "hash", Lifetime.FOREVER, "channel → facts its courier reported at its last start"),
    Key("displays", "channels:{s}:displays", "hash", Lifetime.FOREVER, "channel → how it shows a delivery, as JSON"),
    Key(
        "layout",
        "layout:{s}",
        "string",
        Lifetime.FOREVER,
        "the number of the layout, written at the first start",
    ),
    Key(
        "installation",
        "installation:{s}",
        "hash",
        Lifetime.FOREVER,
        "the mark by which processes see that the data are theirs: `id`, made at the first start; `at`, ms, moved on",
    ),
    Key(
        "data_loss",
        "installation:{s}:loss",
        "string",
        Lifetime.TTL,
        "the last loss of data that was noticed, as JSON, until an operator accepts it",
    ),
    Key(
        "primary",
        "primary:{s}",
        "hash",
        Lifetime.FOREVER,
        "`id`: the replication id of the server that was the primary last; `epoch`: how often it has changed",
    ),
    Key(
        "guard",
        "guard:{s}",
        "string",
        Lifetime.TTL,
        "never exists; every call names it, so that a cluster refuses calls while it moves the slot key by key",
    ),
    Key(
        "replicated",
        "replicated:{s}",
        "string",
        Lifetime.TTL,
        "in a cluster with ADA_DURABILITY=replica: written after each batch of calls, for the replicas to confirm",
    ),
    Key("shards", "shards", "string", Lifetime.FOREVER, "the number of shards, written at the first start"),
    Key(
        "migration",
        "migration",
        "string",
        Lifetime.FOREVER,
        "the migration that moves the data of this server, or has moved them, as JSON; no process starts here then",
    ),
    Key(
        "library",
        "library",
        "string",
        Lifetime.FOREVER,
        "name of the library of functions that was started last; its functions are `<name>_put`, `<name>_claim`, …",
    ),
    Key("libraries", "libraries", "zset", Lifetime.FOREVER, "libraries of functions by the ms of their last start"),
    Key("settings", "settings:{s}", "hash", Lifetime.FOREVER, "settings that functions read: retention_ms, …"),
    Key(
        "webhooks",
        "webhooks:{s}",
        "hash",
        Lifetime.FOREVER,
        "`<tenant>/<id>` → a webhook with its secret, as JSON; `version` → how often a webhook was changed",
    ),
    Key("reader", "webhooks:{s}:reader", "string", Lifetime.TTL, "the process that reads the events for the webhooks"),
    Key(
        "position",
        "webhooks:{s}:position",
        "hash",
        Lifetime.FOREVER,
        "how far the events were read for the webhooks: `entry`, `read` (ms), `behind:<id>` → the last message put",
    ),
    Key("attempts", "webhooks:{s}:attempts:<id>", "list", Lifetime.TTL, "the last attempts to call a webhook, as JSON"),
    Key(
        "health",
        "webhooks:{s}:health:<id>",
        "hash",
        Lifetime.TTL,
        "of a webhook: `succeeded` and `replayed`, the ms of its last success and replay",
    ),
    Key(
        "secret", "secret:{s}:<purpose>", "string", Lifetime.FOREVER, "a secret of this installation, made at first use"
    ),
)
