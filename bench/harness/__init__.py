"""What every benchmark needs: a server, child processes, cost counters, result rows."""
