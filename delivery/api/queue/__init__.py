"""The queue over HTTP, for operators: tasks, tubes, dead letters."""
