"""SMS of a gateway: the reader of those that it has received."""

CHANNEL = "sms"
