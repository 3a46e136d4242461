"""The form of single fields in requests and responses: times, durations, recipients, content. Pure."""
