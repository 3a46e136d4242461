"""Views of scenarios and runs for people: over HTTP, in the console and on the command line."""
