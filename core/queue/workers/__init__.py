"""A worker of one tube: when it claims, what it has in progress, and how it keeps its leases.

    worker          claims while there is room, settles what the handler returns
    claim_schedule  from which shard it claims next
    heartbeat       what it has in progress, and the extension of the leases
    stepping        attempts one task after the other, for tests

`core.queue` exports `Worker` and `WorkerOptions`.
"""
