"""What operators see of a running installation."""
