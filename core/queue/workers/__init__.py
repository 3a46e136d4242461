"""A worker of one tube: when it claims, what it has in progress, and how it keeps its leases.

    worker             claims while there is room, settles what the handler returns
    claim_schedule     from which shard it claims next
    idle_shards     in which shards a claim would find nothing
    tasks_in_progress  how much it has taken, and what the end of a task changes
    heartbeat          extends its leases

`core.queue` exports `Worker` and `WorkerOptions`.
"""
