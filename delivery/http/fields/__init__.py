"""The form of single fields in requests and responses: texts, ids, times, durations. Pure."""
