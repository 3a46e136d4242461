"""Actions that use speech services and language models."""
