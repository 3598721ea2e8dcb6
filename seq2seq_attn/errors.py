"""The errors a user can meet: each is one line that names the value, what is allowed, and the fix."""

from __future__ import annotations


class UserError(Exception):
    """Something outside the program is wrong (a file, a download, a run directory). The command exits with 1."""

    exit_code = 1


class UsageError(UserError):
    """The command line or the configuration is wrong. The command exits with 2."""

    exit_code = 2
