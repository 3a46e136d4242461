"""Keys of jobs."""

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
        "`version`, `state`, `record` (JSON), `holder` (the attempt that runs), `losses` (of attempts in a row), `own` "
        "(the state of its own, as the iteration that has begun has left it)",
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
