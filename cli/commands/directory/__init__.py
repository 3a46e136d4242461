"""Commands that keep the directory: people, groups, owners, imports, exports."""
