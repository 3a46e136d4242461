"""bench queue --beside bullmq: Ada's queue and BullMQ with the same work, in turn, in one run (docs/performance.md).

    ada_program     the tasks (JSON of 200 characters, ten consecutive tasks to a lane), put and handled by Ada's queue
    bullmq_program  the same with BullMQ, in Node
    systems         how the programs of each system are started; npm installs BullMQ into a temporary directory
    comparison      alternates the systems, each figure on a fresh server; prints medians, ranges and ratios

Both handlers parse the JSON and append a line to a file; one worker process handles up to 100 tasks at once. 32 callers
put, each waits for the answer before it puts again. Latency is from put to the start of the handler, at 100 puts per
second. Ended tasks are not kept. BullMQ has no lanes, so Ada is measured with lanes and without.
"""
