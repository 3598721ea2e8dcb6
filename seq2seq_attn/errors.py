"""Errors shown to users. A message is one line: the value, what is allowed, and what to do."""


class UserError(Exception):
    """A run-time failure: a file, a download, a run directory. The command exits with 1."""

    exit_code = 1


class UsageError(UserError):
    """The command line or the configuration is wrong. The command exits with 2."""

    exit_code = 2
