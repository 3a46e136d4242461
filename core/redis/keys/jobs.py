"""Keys of jobs, and of the queue: tasks, lanes, indexes, throttles, the bell and the timer of sleeping workers."""

from core.redis.keys.key import Key, Lifetime

JOBS = (
    Key(
        "model_budget",
        "jobs:{s}:tokens:<tenant>:<user>:<day>",
        "string",
        Lifetime.TTL,
        "how many tokens of language models a user's jobs have used on a day",
    ),
    Key(
        "job_kinds",
        "jobs:{s}:kinds",
        "hash",
        Lifetime.FOREVER,
        "kind of job → its schedule, as JSON; `KIND?QUERY` → when it was published (ms)",
    ),
    Key(
        "jobs", "jobs:{s}:of:<tenant>", "zset", Lifetime.FOREVER, "the jobs of a tenant by the ms of their first start"
    ),
    Key("job_counts", "jobs:{s}:counts:<tenant>", "hash", Lifetime.FOREVER, "state → how many jobs of a tenant"),
    Key("jobs_due", "jobs:{s}:due", "zset", Lifetime.FOREVER, "jobs with work to do by the ms of their next iteration"),
    Key("jobs_ended", "jobs:{s}:ended", "zset", Lifetime.FOREVER, "children that have ended by the ms of their end"),
    Key(
        "job",
        "job:{s}:<id>",
        "hash",
        Lifetime.FOREVER,
        "`version`, `state`, `record` (JSON), `task` (of the next iteration), `holder` (the attempt that runs), "
        "`losses` (of attempts in a row), `own` (the state of its own, as the iteration that has begun has left it)",
    ),
    Key("job_keys", "job-keys:{s}:<id>", "set", Lifetime.FOREVER, "the jobs with keys of a kind and user"),
    Key(
        "job_steps",
        "job-steps:{s}:<id>",
        "hash",
        Lifetime.WORK,
        "what the iteration that has begun has stored, or that of a job that has ended, for the retention",
    ),
    Key(
        "job_order",
        "job-order:{s}:<id>",
        "zset",
        Lifetime.WORK,
        "the names of that, and of the items and effects of the iteration, by the ms when they were stored first",
    ),
    Key("job_units", "job-units:{s}:<id>", "hash", Lifetime.FOREVER, "what became of a job's items and effects"),
    Key("job_signals", "job-signals:{s}:<id>", "list", Lifetime.FOREVER, "signals that wait for a job, as JSON"),
    Key("job_signal", "job-signal:{s}:<id>:<signal>", "string", Lifetime.TTL, "a signal that was sent in the last day"),
    Key("job_log", "job-log:{s}:<id>", "list", Lifetime.FOREVER, "the last 1000 lines of a job: number, ms, text"),
    Key("job_bell", "job-bell:{s}:<id>", "string", Lifetime.TTL, "exists while the log of a job is followed"),
    Key("job_slots", "job-slots:{s}:<limit>", "zset", Lifetime.TTL, "jobs with a slot of a limit by the ms of its end"),
    Key("job_queue", "job-queue:{s}:<limit>", "zset", Lifetime.TTL, "jobs that wait for a slot by the ms since when"),
    Key("job_queues", "job-queues:{s}", "set", Lifetime.TTL, "the limits for whose slots jobs wait"),
    Key(
        "job_slot",
        "job-slot:{s}:<id>",
        "hash",
        Lifetime.TTL,
        "of a job with slots, or that waits for them: `limits` (JSON), `by` (the attempt or the task), `since` (ms)",
    ),
    Key("job_calls", "job-calls:{s}:<limit>", "list", Lifetime.TTL, "ms of the last calls of a limit, newest first"),
    Key("job_turns", "job-turns:{s}:<limit>", "zset", Lifetime.TTL, "jobs that wait for a call by the ms of the turn"),
    Key("job_refused", "job-refused:{s}:<limit>", "string", Lifetime.TTL, "ms until which a service refuses all calls"),
)


QUEUE = (
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
        "the bell; exists only while a worker of it sleeps, and nothing of the tube can be claimed",
    ),
    Key(
        "timer",
        "queue:{s}:timer",
        "string",
        Lifetime.TTL,
        "the worker that keeps the timer, and the next moment (due, lease, expiry) in ms, -1 for none",
    ),
    Key(
        "reply", "reply:{s}:<client>", "stream", Lifetime.TTL, "ends of tasks for which this client waits, with results"
    ),
)
