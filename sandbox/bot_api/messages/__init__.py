"""The methods about messages: sending, editing, files, formatting, keyboards, inline answers."""
