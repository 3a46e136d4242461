"""What people see of scenarios and runs: over HTTP, in the console and on the command line."""
