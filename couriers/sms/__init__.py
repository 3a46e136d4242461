"""SMS through Kannel, or a provider with a profile."""
