"""Programs that only developers of Ada run: the linter of Lua, further Pythons, pictures of the console."""
