"""The command line: reads the settings, connects the parts of Ada and starts its processes.

- `main`, `command`: the verbs, their help, exit codes.
- `commands`: one module per verb or group of verbs.
- `settings`: all settings. `processes`: the supervisor and the embedded server. `client`: calls to a running Ada.

Nothing imports this package except `bench` and the tests.
"""

VERSION = "0.1.0"
"""As CHANGELOG.md names it."""
