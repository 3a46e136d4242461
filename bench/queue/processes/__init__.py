"""The processes that `bench queue` starts, and the tasks that they put and do."""
