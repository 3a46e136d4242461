"""One module per verb or group of related verbs. Each has a table COMMANDS, which `cli.main` reads."""
