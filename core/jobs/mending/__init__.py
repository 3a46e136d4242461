"""Looking into jobs and mending them: results in order, resets, changes of many jobs, queries."""
