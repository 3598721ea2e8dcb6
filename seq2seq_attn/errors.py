"""Errors shown to users. Each is one line that names the value, what is allowed, and the fix."""


class UserError(Exception):
    """A run-time failure: a file, a download, a run directory. The command exits with 1."""

    exit_code = 1


class UsageError(UserError):
    """The command line or the configuration is wrong. The command exits with 2."""

    exit_code = 2
