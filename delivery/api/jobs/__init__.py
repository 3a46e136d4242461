"""Long-running jobs over HTTP."""
