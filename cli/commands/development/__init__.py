"""Commands for those who develop Ada."""
