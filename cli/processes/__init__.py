"""Child processes and what a process needs at its start.

- `supervisor`, `die_with_parent`: start child processes, restart them, stop them in order.
- `forked_process`, `preloaded`: start a child as a fork of a process that has imported the libraries.
- `embedded_valkey`, `aof_fsync`: the Valkey server in the data directory and the durability of its file.
- `startup`: logging, signals and the store of one process.

Guarantees: child processes end when the supervisor ends, also after SIGKILL; at most one server per data directory.
Neighbours: `cli.commands` uses this package; it uses `cli.settings` and `core.redis`.
"""
