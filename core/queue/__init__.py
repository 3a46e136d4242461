"""The queue: tasks with strict lanes, leases, deferral, cancellation, search and replies."""
