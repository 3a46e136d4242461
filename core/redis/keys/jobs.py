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
    Key("job_kinds", "jobs:{s}:kinds", "hash", Lifetime.FOREVER, "kind of job → its schedule, as JSON"),
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
    Key("job_steps", "job-steps:{s}:<id>", "hash", Lifetime.WORK, "what the iteration that has begun has stored"),
    Key("job_units", "job-units:{s}:<id>", "hash", Lifetime.FOREVER, "what became of a job's items and effects"),
    Key("job_signals", "job-signals:{s}:<id>", "list", Lifetime.FOREVER, "signals that wait for a job, as JSON"),
    Key("job_signal", "job-signal:{s}:<id>:<signal>", "string", Lifetime.TTL, "a signal that was sent in the last day"),
    Key("job_log", "job-log:{s}:<id>", "list", Lifetime.FOREVER, "the last 1000 lines of a job: number, ms, text"),
    Key("job_bell", "job-bell:{s}:<id>", "string", Lifetime.TTL, "exists while the log of a job is followed"),
)
