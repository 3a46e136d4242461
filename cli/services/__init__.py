"""Opens the services of a process with the settings."""
