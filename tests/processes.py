"""Commands in processes of their own."""

import subprocess


def output_of(command, **options):
    """What a command prints that succeeds."""
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout
