"""One file per step, and `parts` that several share. Read by `core.scripts`; a package so that pip installs it."""
