"""Entry point of `python -m seq2seq_attn` and of the installed command `seq2seq`: run a command
line and exit with a code.

The exit code is 0 after success, 1 after a run-time failure, 2 after a mistake in the command line
or the configuration, 129 after SIGHUP, 130 after Ctrl-C, and 143 after SIGTERM. Logs, progress bars
and errors go to stderr. An error is one line; `--debug` adds the traceback.
"""

import atexit
import errno
import io
import logging
import os
import select
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import takewhile
from typing import NoReturn

from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.runtime.memory import is_memory_error, paused_collector
from seq2seq_attn.runtime.signals import handle_signals
from seq2seq_attn.text.normalize import visible

INTERRUPTED = 128 + signal.SIGINT
_MAX_ERROR = 800
"""Maximum number of characters in an error message."""


def main() -> NoReturn:
    """Run the command line of the process and exit. The installed command `seq2seq` calls this."""
    code = run(sys.argv[1:])
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # another Ctrl-C is quiet
    try:
        # These steps end the interpreter, except that no objects are freed: the system frees
        # the memory faster than Python, which needs 0.4 s for the objects of torch.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            # the stream may be a broken pipe, or closed, or None from the start
            with suppress(OSError, ValueError, AttributeError):
                stream.flush()
    finally:
        os._exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. Errors are printed, not raised."""
    is_debug = "--debug" in takewhile(lambda argument: argument != "--", arguments)
    if sys.stderr is None:
        # The caller closed stderr. Without this, the next file that is opened would get its
        # descriptor, and our log.
        sys.stderr = open(os.devnull, "w")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # the encoding of stdout may lack characters that reports contain
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with paused_collector():
            # The import takes 0.3 s. It is inside the `try` so that Ctrl-C is handled meanwhile.
            from seq2seq_attn.cli import PROGRAM, app

        signals = handle_signals((signal.SIGTERM, signal.SIGHUP), _exit)
        with _logging_to_stderr(is_debug=is_debug), signals:
            code = app(args=list(arguments or ["--help"]), prog_name=PROGRAM, standalone_mode=False)
            if sys.stdout is not None:  # stdout is None if the caller closed it
                sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # Typer exits on a closed pipe
            return _broken_pipe(stop.__context__, arguments)
        return stop.code if isinstance(stop.code, int) else UserError.exit_code
    except BrokenPipeError as error:
        return _broken_pipe(error, arguments)
    except Exception as error:
        from seq2seq_attn.cli import is_from_parser

        if is_debug and not is_from_parser(error):
            traceback.print_exc()
        return _complain(error, arguments)
    return code if isinstance(code, int) else 0


@contextmanager
def _logging_to_stderr(*, is_debug: bool) -> Iterator[None]:
    """Write the package's log to stderr, above progress bars.

    Write errors are ignored, because the terminal or the log collector may have been closed.
    """

    class AboveBars(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            from tqdm import tqdm

            with suppress(OSError):
                tqdm.write(visible(self.format(record)), file=sys.stderr)

    package = logging.getLogger("seq2seq_attn")
    handler = AboveBars()
    former = package.level
    package.addHandler(handler)
    package.setLevel(logging.DEBUG if is_debug else logging.INFO)
    try:
        yield
    finally:
        package.removeHandler(handler)
        package.setLevel(former)


def _exit(signal_number: int, frame: object) -> NoReturn:
    """Unwind the stack after a signal, so that temporary files are removed."""
    raise SystemExit(128 + signal_number)


def _complain(error: Exception, arguments: Sequence[str]) -> int:
    """Write an error to stderr as one line and return the exit code."""
    from seq2seq_attn.cli import explain_parser_error, is_from_parser

    code = error.exit_code if isinstance(error, UserError) else UserError.exit_code
    # `variants` is loaded if a module of the user was imported, which may have raised the error
    variants = sys.modules.get("seq2seq_attn.model.variants")
    place = variants.place_in_module(error) if variants else None
    if is_from_parser(error):
        text = explain_parser_error(error, arguments)
        code = UsageError.exit_code
    elif isinstance(error, OSError) and not place:
        text = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        if error.errno == errno.ENOENT and not error.filename:  # from os.getcwd
            text = "the current folder was deleted; change to another one"
    elif is_memory_error(error):
        text = "out of memory; try a smaller --batch-size, or close other programs"
    elif isinstance(error, UserError):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}"
        hint = "rerun with --debug for a traceback"
        modules = variants.imported_modules() if variants else ""
        cause = f", perhaps caused by {modules}" if modules else ""
        text = f"{place}: {text} ({hint})" if place else f"{text} (unexpected error{cause}; {hint})"
    line = visible(" ".join(text.split()))
    if len(line) > _MAX_ERROR:  # the error may quote a value of any length
        line = f"{line[: _MAX_ERROR // 2]} ... {line[-_MAX_ERROR // 2 :]}"
    with suppress(OSError):  # if stderr is gone, the exit code still reports the failure
        sys.stderr.write(f"error: {line}\n")
    return code


def _broken_pipe(error: BrokenPipeError, arguments: Sequence[str]) -> int:
    """Return exit code 0 if the reader of stdout closed the pipe, for example `head`.

    Stdout is then redirected to /dev/null, so that the last flush of the interpreter succeeds.
    Any other broken pipe is reported as an error.
    """
    try:
        descriptor = sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):  # the caller closed stdout, or it is no file
        return _complain(error, arguments)
    stdout = select.poll()
    stdout.register(descriptor, 0)  # no events are requested: POLLERR is always reported
    if not stdout.poll(0):
        return _complain(error, arguments)
    os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
    return 0


if __name__ == "__main__":
    main()
