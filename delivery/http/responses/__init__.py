"""The forms of a response: problems, CSV, NDJSON, events; compressed JSON."""
