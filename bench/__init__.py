"""The measurements behind docs/performance.md: `./ada bench NAME`.

Every benchmark starts its own Valkey and its own processes in a temporary directory and stops them at the end.

    delivery    how late, how many, how expensive: deliveries, from the HTTP API to the provider
    queue       cost, rates, latency and memory of the queue alone
    people      import, expansion of groups, quotas, latency of the bot
    scenarios   latency, rate and cost of bots written in YAML
    jobs        lateness, takeover after a kill, bytes and idle CPU of long-running jobs
    baselines   bare mechanisms and other queues, to compare with in the same run
    harness     what every benchmark needs: a server, child processes, cost counters, result rows

A benchmark is a module with `declare(parser)` and `async measure(arguments, rows)`.
"""

from collections.abc import Mapping

MODULES: Mapping[str, str] = {
    "lag": "bench.delivery.lag",
    "enqueue": "bench.delivery.enqueue",
    "deliver": "bench.delivery.deliver",
    "durability": "bench.delivery.durability",
    "idle": "bench.delivery.idle",
    "memory": "bench.delivery.memory",
    "footprint": "bench.delivery.footprint",
    "console": "bench.delivery.console",
    "queue": "bench.queue",
    "cluster": "bench.queue.cluster",
    "people": "bench.people",
    "scenarios": "bench.scenarios",
    "jobs": "bench.jobs",
}
"""The module of each benchmark, by the name that `./ada bench` takes."""
