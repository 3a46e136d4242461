"""The core of Ada: deliveries, their histories and the queue that carries them out, on Redis/Valkey and Lua.

Packages, each importing only from those below it (docs/architecture.md):

    sending                          orders to people and groups, under the rules; beside the next three
    courier · webhooks · audit       execute parcels; notify receivers; prove the invariants
    history · queue · admission      deliveries and outcomes; tasks; API keys and idempotency
    directory                        people, groups and who may write to them, beside the three above
    redis · mail                     keys, functions, pipelining, keyspace events, streams; e-mail over SMTP
    model → errors                   pure values and rules

Guarantee: every change of state is one Lua function, so a crash leaves all of it or nothing. Neighbours: `delivery`,
`couriers`, `cli` and `bench` import from here; nothing here imports them.
"""
