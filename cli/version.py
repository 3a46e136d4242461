"""The version of Ada, as CHANGELOG.md names it."""

VERSION = "0.1.0"
