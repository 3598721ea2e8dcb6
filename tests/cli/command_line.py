"""Run a command and read its output or its error message."""

from seq2seq_attn.__main__ import run


def set_options(settings):
    """The settings, `KEY=VALUE`, as options of a command."""
    return [f"--set={setting}" for setting in settings]


def outputs(capsys, *arguments):
    """The lines of a command that succeeds."""
    capsys.readouterr()
    assert run(arguments) == 0
    return capsys.readouterr().out.split("\n")[:-1]


def assert_fails(capsys, *arguments, code, message):
    """The command leaves with the exit code and one line of error that holds the message; stdout
    stays empty."""
    capsys.readouterr()
    assert run(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    lines = err.splitlines()
    assert [line for line in lines if line.startswith("error: ")] == lines[-1:]
    assert message in lines[-1], lines[-1]
