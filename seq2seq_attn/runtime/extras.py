"""Packages that only some commands need. An extra installs them: `seq2seq-attn[plots]`."""

from importlib.util import find_spec

from seq2seq_attn.errors import UserError


def require(extra: str, *packages: str) -> None:
    """Raise UserError if a package that `extra` installs is missing."""
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise UserError(
            f"{', '.join(missing)}: not installed; run: pip install 'seq2seq-attn[{extra}]'"
        )
