"""One module per group of API operations."""
