"""Every Redis key of Ada: name, type, lifetime and content. The Lua functions get the same names from here.

A key is `Key.<name>(…)` in Lua and `KEYS["<name>"].at(shard, …)` in Python; both are built from the pattern below.
`{s}` is the shard tag: everything of one delivery, its tasks in all channels included, is in one slot. A key without
it belongs to the server.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

# The layout of the keys below and their content. Versions of Ada with the same number work side by side on one server;
# a version with another number refuses to start (docs/decisions/0020). Raise it when an older function would misread
# data of a newer one, or the other way round; not for a key or field that the older function does not touch.
LAYOUT = 4


class Lifetime(StrEnum):
    """What removes a key."""

    TTL = "its own time to live"
    RETENTION = "the retention of its delivery"
    WORK = "the end of its work"
    FOREVER = "nothing: it stays, bounded in size"


@dataclass(frozen=True, slots=True)
class Key:
    """One kind of key. `pattern`: `{s}` is the shard tag, `<name>` a part."""

    name: str
    pattern: str
    type: str
    lifetime: Lifetime
    what: str

    @property
    def parts(self) -> list[str]:
        return re.findall(r"<(\w+)>", self.pattern)

    def at(self, shard: int, *parts: str) -> str:
        """Return the key itself."""
        start, *between = _texts_of(self.pattern)
        words = (f"{{{shard}}}", *parts) if "{s}" in self.pattern else parts
        return start + "".join(word + text for word, text in zip(words, between, strict=True))

    @property
    def lua(self) -> str:
        """The Lua function that builds the key; the shard tag is in the variable `shard`."""
        pieces = re.split(r"(\{s\}|<\w+>)", self.pattern)
        expression = " .. ".join(_lua_piece(piece) for piece in pieces if piece)
        return f"function Key.{self.name}({', '.join(self.parts)}) return {expression} end"

    def matches(self, key: str) -> bool:
        """Return whether a key found on a server is of this kind."""
        return _regex_of(self.pattern).fullmatch(key) is not None


def _lua_piece(piece: str) -> str:
    if piece == "{s}":
        return "shard"
    return piece[1:-1] if piece.startswith("<") else f"'{piece}'"


@cache
def _texts_of(pattern: str) -> list[str]:
    """Return the texts before, between and after the shard tag and the parts."""
    return re.split(r"\{s\}|<\w+>", pattern)


@cache
def _regex_of(pattern: str) -> re.Pattern[str]:
    pieces = re.split(r"(\{s\}|<\w+>)", pattern)
    return re.compile("".join(_regex_piece(piece) for piece in pieces), re.DOTALL)


def _regex_piece(piece: str) -> str:
    if piece == "{s}":
        return r"\{\d+\}"
    return r".+" if piece.startswith("<") else re.escape(piece)


_TABLE = [
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
        "then, if the channel could not show all of the content, 1F and a list of what was not shown",
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
        "choices:{s}:<channel>:<address>",
        "string",
        Lifetime.TTL,
        "the numbered choices of the last message to an address without buttons: `[{text, data}, …]`",
    ),
    Key(
        "references",
        "references:{s}:<channel>:<account>:<peer>",
        "zset",
        Lifetime.TTL,
        "the newest messages of a provider's dialog that are not read: entry by message number; `read`: the last mark",
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
    Key(
        "task",
        "queue:{s}:task:<id>",
        "string",
        Lifetime.WORK,
        "tube, lane, order and the rest as JSON, between tabs; then, on the next line, the body. "
        "An ended task that is kept has a time to live",
    ),
    Key("taken", "queue:{s}:taken", "hash", Lifetime.WORK, "taken task → `<token> <started ms> <owner>`"),
    Key(
        "progress",
        "queue:{s}:progress:<id>",
        "hash",
        Lifetime.WORK,
        "what only some tasks have besides: checkpoint, open entries of a parcel, cancellation, answer, last error, …",
    ),
    Key(
        "due", "queue:{s}:due", "zset", Lifetime.WORK, "deferred and backing-off tasks, and `order:<suffix>`, by due ms"
    ),
    Key(
        "lane",
        "queue:{s}:lane:<tube>:<lane>",
        "zset",
        Lifetime.WORK,
        "the lane's tasks behind the first one, in order",
    ),
    Key(
        "head",
        "queue:{s}:head:<tube>",
        "hash",
        Lifetime.WORK,
        "lane → its first task: ready, taken or backing off",
    ),
    Key(
        "ready",
        "queue:{s}:ready:<tube>:<tenant>",
        "zset",
        Lifetime.WORK,
        "takeable lanes (`@lane`) and lane-less tasks by priority, order",
    ),
    Key("tenants", "queue:{s}:tenants:<tube>", "zset", Lifetime.WORK, "tenants with takeable work by virtual time"),
    Key("turns", "queue:{s}:turns", "hash", Lifetime.FOREVER, "tube → virtual time of the tenant served last"),
    Key("weights", "queue:{s}:weights", "hash", Lifetime.FOREVER, "tenant → its weight, where it is not 1"),
    Key("options", "queue:{s}:tubes", "hash", Lifetime.FOREVER, "`<tube>:<option>` → the options of the tube"),
    Key("pace", "queue:{s}:pace:<tube>", "string", Lifetime.TTL, "the ms up to which the tube's pace is used up"),
    Key(
        "by",
        "queue:{s}:by:<field>:<value>",
        "zset",
        Lifetime.WORK,
        "live tasks by user, tenant (not the default one), kind, tag; "
        "by lane those that are not in their lane, or once were not",
    ),
    Key("kinds", "queue:{s}:kinds", "zset", Lifetime.WORK, "kinds of live tasks, for the search by prefix"),
    Key("puts", "queue:{s}:puts:<client>", "zset", Lifetime.TTL, "calls of put that their client may still repeat"),
    Key("seen", "queue:{s}:seen:<source>", "zset", Lifetime.TTL, "names under which a source has put tasks, by ms"),
    Key("lease", "queue:{s}:lease", "zset", Lifetime.WORK, "taken tasks by the ms their lease ends"),
    Key("expires", "queue:{s}:expires", "zset", Lifetime.WORK, "tasks that expire, by ms"),
    Key("buried", "queue:{s}:buried", "zset", Lifetime.WORK, "buried tasks by the ms they were buried"),
    Key(
        "dead_letter",
        "queue:{s}:dead:<group>",
        "zset",
        Lifetime.WORK,
        "buried tasks with one tube, kind and error (`tube<tab>kind<tab>error`) by the ms they were buried",
    ),
    Key("dead_letters", "queue:{s}:dead", "zset", Lifetime.WORK, "groups of buried tasks by their size"),
    Key(
        "finished",
        "queue:{s}:finished",
        "zset",
        Lifetime.RETENTION,
        "finished tasks that are kept, by the ms at which they are dropped",
    ),
    Key(
        "throttles",
        "queue:{s}:throttles:<tube>",
        "zset",
        Lifetime.TTL,
        "throttled scopes (account, method) by the ms at which the throttle ends",
    ),
    Key(
        "rate",
        "queue:{s}:rate:<tube>:<account>",
        "hash",
        Lifetime.TTL,
        "how fast an account may call its provider: the learned rate per second, the one refused last, the next call",
    ),
    Key(
        "signal",
        "queue:{s}:signal:<tube>",
        "string",
        Lifetime.TTL,
        "set and deleted at once at each throttle: the event stops the attempts of all processes of the tube",
    ),
    Key("counters", "queue:{s}:counters", "hash", Lifetime.FOREVER, "submit and token counters, transitions by tube"),
    Key("states", "queue:{s}:states", "hash", Lifetime.FOREVER, "`<tube>:<state>` → number of tasks in it now"),
    Key(
        "bell",
        "delivery:{s}:idle:<tube>",
        "string",
        Lifetime.TTL,
        "the bell; exists only while a worker of it sleeps",
    ),
    Key(
        "timer",
        "queue:{s}:timer",
        "string",
        Lifetime.TTL,
        "the worker that keeps the timer of the due index",
    ),
    Key("events", "events:{s}", "stream", Lifetime.FOREVER, "state changes; trimmed by length"),
    Key(
        "reply", "reply:{s}:<client>", "stream", Lifetime.TTL, "ends of tasks for which this client waits, with results"
    ),
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
    Key("signinlink", "signinlink:{s}:<hash>", "string", Lifetime.TTL, "whom a link of the bot signs in"),
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
    Key("users", "directory:{s}:users:<tenant>", "hash", Lifetime.FOREVER, "id of a person → its record as JSON"),
    Key("userids", "directory:{s}:userids:<tenant>", "zset", Lifetime.FOREVER, "ids of the people, sorted as text"),
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
        "dialog",
        "dialog:{s}:<tenant>:<channel>:<address>",
        "string",
        Lifetime.TTL,
        "the state of a bot's dialog with a person, as JSON",
    ),
    Key(
        "replies",
        "dialog:{s}:replies:<tenant>:<channel>:<address>",
        "string",
        Lifetime.TTL,
        "number of a bot's replies to an address in a day",
    ),
    Key(
        "menus",
        "scenarios:{s}:menus:<bot>",
        "string",
        Lifetime.FOREVER,
        "the scopes of a bot's menus of commands, as JSON",
    ),
    Key(
        "gathered",
        "updates:{s}:gathered:<source>:<name>",
        "hash",
        Lifetime.TTL,
        "parts of an event that come in several updates, an album or a join: id of a part → when its window ends, part",
    ),
    Key(
        "person",
        "persons:{s}:person:<tenant>:<channel>:<user>",
        "hash",
        Lifetime.TTL,
        "what a bot knows of a person: names, chats, first and last event (ms), state and until when (ms), keyboard",
    ),
    Key("username", "persons:{s}:name:<tenant>:<channel>:<name>", "string", Lifetime.TTL, "id of the person so called"),
    Key(
        "stepresult",
        "steps:{s}:<tenant>:<step>",
        "string",
        Lifetime.TTL,
        "what a step of a scenario has made outside its run; a repeat of the step uses it",
    ),
    Key("request", "requests:{s}:request:<tenant>:<id>", "string", Lifetime.TTL, "a request of a person, as JSON"),
    Key("requestnumber", "requests:{s}:number:<tenant>", "string", Lifetime.FOREVER, "id of the newest request"),
    Key(
        "requestlist",
        "requests:{s}:list:<tenant>:<of>",
        "zset",
        Lifetime.TTL,
        "ids of the requests by ms; `all`, or `name:<kind of request>`",
    ),
    Key("promos", "promos:{s}:codes:<tenant>", "hash", Lifetime.FOREVER, "promo code in capitals → its record as JSON"),
    Key("promolist", "promos:{s}:list:<tenant>", "zset", Lifetime.FOREVER, "promo codes by creation ms"),
    Key("promonumber", "promos:{s}:number:<tenant>", "string", Lifetime.FOREVER, "id of the newest promo"),
    Key("promoids", "promos:{s}:ids:<tenant>", "zset", Lifetime.FOREVER, "promo codes by id"),
    Key("promoends", "promos:{s}:ends:<tenant>", "zset", Lifetime.FOREVER, "promo codes that expire, by ms"),
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
    Key("polled", "dialog:{s}:polled:<bot>", "string", Lifetime.TTL, "the number of the next event of VK to read"),
    Key("poller", "dialog:{s}:poller:<bot>", "string", Lifetime.TTL, "the process that gets the updates of a bot"),
    Key(
        "damaged",
        "damaged:{s}:<key>",
        "any",
        Lifetime.TTL,
        "a key in whose place was something of another type; the audit reports it, and its repair lets it expire",
    ),
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
        Lifetime.FOREVER,
        "of a webhook: `succeeded` and `replayed`, the ms of its last success and replay",
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
    Key(
        "model_budget",
        "jobs:{s}:tokens:<tenant>:<user>:<day>",
        "string",
        Lifetime.TTL,
        "how many tokens of language models a user's jobs have used on a day",
    ),
    Key("job_kinds", "jobs:{s}:kinds", "hash", Lifetime.FOREVER, "kind of job → its schedule, as JSON"),
    Key(
        "jobs", "jobs:{s}:of:<tenant>", "zset", Lifetime.FOREVER, "the jobs of a tenant by the ms of their first start"
    ),
    Key("job_counts", "jobs:{s}:counts:<tenant>", "hash", Lifetime.FOREVER, "state → how many jobs of a tenant"),
    Key("jobs_due", "jobs:{s}:due", "zset", Lifetime.FOREVER, "jobs with work to do by the ms of their next iteration"),
    Key(
        "job",
        "job:{s}:<id>",
        "hash",
        Lifetime.FOREVER,
        "`version`, `state`, `record` (JSON), `holder` (the attempt that runs), `losses` (of attempts in a row)",
    ),
    Key("job_steps", "job-steps:{s}:<id>", "hash", Lifetime.WORK, "what the iteration that has begun has stored"),
    Key("job_units", "job-units:{s}:<id>", "hash", Lifetime.FOREVER, "what became of a job's items and effects"),
    Key("job_log", "job-log:{s}:<id>", "list", Lifetime.FOREVER, "the last 1000 lines of a job: number, ms, text"),
    Key("job_bell", "job-bell:{s}:<id>", "string", Lifetime.TTL, "exists while the log of a job is followed"),
    Key(
        "run",
        "run:{s}:<run>",
        "hash",
        Lifetime.RETENTION,
        "a run of scenarios: tenant, person, event, version of the bot, and one field for each action that has ended",
    ),
    Key(
        "runs",
        "runs:{s}:of:<tenant>:<person>",
        "zset",
        Lifetime.TTL,
        "the newest runs of a person by the ms they began",
    ),
    Key(
        "ended_runs",
        "runs:{s}:ended",
        "zset",
        Lifetime.RETENTION,
        "finished runs by the ms at which they are dropped",
    ),
    Key(
        "parked",
        "runs:{s}:parked",
        "zset",
        Lifetime.TTL,
        "`<run> <task of its event> <history key>`: runs that wait for the end of a delivery, by ms",
    ),
    Key("version", "scenarios:{s}:version:<name>", "string", Lifetime.TTL, "a version of a bot's scenarios as JSON"),
    Key(
        "goodversion",
        "scenarios:{s}:good:<tenant>:<folder>",
        "string",
        Lifetime.TTL,
        "the last version without mistakes of the bot in this folder; `folder`: a digest of its path",
    ),
    Key(
        "secret", "secret:{s}:<purpose>", "string", Lifetime.FOREVER, "a secret of this installation, made at first use"
    ),
]

KEYS = {key.name: key for key in _TABLE}

# Keys that may stay on a server for ever. All others have a TTL or go with their work.
PERMANENT = tuple(key for key in _TABLE if key.lifetime is Lifetime.FOREVER)


_ANY = re.compile("|".join(f"(?:{_regex_of(key.pattern).pattern})" for key in _TABLE), re.DOTALL)


def is_ours(name: str) -> bool:
    """Return whether a key found on a server is one of Ada's."""
    return _ANY.fullmatch(name) is not None


def bell(shard: int, tube: str) -> str:
    """Return the key whose `del` or `expired` wakes a sleeping worker of `tube`."""
    return KEYS["bell"].at(shard, tube)


def kind_of(name: str) -> Key | None:
    """Return the kind of a key found on a server; None if it is not one of Ada's. The longest matching pattern wins."""
    matching = [key for key in _TABLE if key.matches(name)]
    return max(matching, key=lambda key: len(key.pattern), default=None)
