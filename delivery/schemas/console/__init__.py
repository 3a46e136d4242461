"""What the web console sends and gets besides: keys, sessions, the log of actions, processes, audits."""
