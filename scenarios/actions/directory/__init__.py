"""Actions that know who the person of the event is in the directory."""
