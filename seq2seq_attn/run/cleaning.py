"""Remove the files of a run, or the temporary files that a killed process has left."""

import shutil
from pathlib import Path

from seq2seq_attn.config.load import RUN_CONFIG
from seq2seq_attn.files import MANIFEST
from seq2seq_attn.run.names import LAST, LISTED, RUN_FILES


def remove_run_files(folder: Path) -> None:
    """Remove all files that a run writes. The configuration, which makes the folder a run, is
    removed last."""
    files: set[Path] = set()
    for pattern in RUN_FILES:
        files.update(folder.glob(pattern))
    for old in sorted(files, key=lambda path: path.name == RUN_CONFIG):
        if old.is_dir() and not old.is_symlink():
            shutil.rmtree(old)
        else:
            old.unlink()


def remove_run_leftovers(folder: Path) -> None:
    """Remove temporary files of a process that was killed. If the process was killed before it
    wrote the configuration, remove the manifest too."""
    has_draft = any(folder.glob(f".{RUN_CONFIG}.*.tmp"))
    if has_draft and not (folder / RUN_CONFIG).exists():
        (folder / MANIFEST).unlink(missing_ok=True)
    for name in (*LISTED, MANIFEST, f"{LAST}/*"):
        path = folder / name
        for leftover in path.parent.glob(f".{path.name}.*.tmp"):
            leftover.unlink()
