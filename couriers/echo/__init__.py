"""The channel of docs/add-a-courier.md: messages in a file."""
