"""Download Multi30k, task 1 (Elliott et al. 2016), from the dataset's repository and verify the
SHA-256 of each file.

The dataset is for non-commercial research and education. So every user downloads its text, and the
package does not contain it.
"""

import hashlib
import http.client
import logging
import os
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

from seq2seq_attn.config import plural
from seq2seq_attn.errors import UsageError, UserError
from seq2seq_attn.files import atomic_path, sha256_of

COMMIT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"
BASE_URL = f"https://raw.githubusercontent.com/multi30k/dataset/{COMMIT}/data/task1/raw"
SOURCE_DIR_VARIABLE = "SEQ2SEQ_MULTI30K_DIR"
"""environment variable that names a folder with the published files, if `fetch` is called without a
source folder"""
SPLITS = {
    "train": "train",
    "valid": "val",
    "test_2016_flickr": "test_2016_flickr",
    "test_2017_flickr": "test_2017_flickr",
    "test_2017_mscoco": "test_2017_mscoco",
}
"""the name of each split in this package, and its name in the dataset"""
SHA256 = {
    "test_2016_flickr.cs.gz": "200a4a74cc9560f051924abb9803be008d1908d77f747e9141aeb86dfd2797f1",
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
    "test_2016_flickr.fr.gz": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
    "test_2017_flickr.de.gz": "a2c89666db00c495cd8513b9d708d5a3acc205d7de312ef2bf5fb7ebc1540aee",
    "test_2017_flickr.en.gz": "76a444ee25172e72695cddb13ae4a3bda59430617be88e0bb46b60504f054074",
    "test_2017_flickr.fr.gz": "3ba671ceb2299f3304ffafefea7a833d08632fbaf0ba18546f8a2ec2391af496",
    "test_2017_mscoco.de.gz": "799e4854c25d601cb6cb6be29eabe5667734c61ace2f495e03e429031a0bc338",
    "test_2017_mscoco.en.gz": "aab300bfb4427697987e02cd0aacd44bfe8aa50456231b6474c08038bbed2b58",
    "test_2017_mscoco.fr.gz": "754f3072ba9f124569ba5258b32730fc1d214bbf8e0c6dfb2b74401676220db0",
    "train.cs.gz": "a65adb8b32e3bc664f21ecba7a6e7f6950fd1f405e135f7c312faabdb6255077",
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "train.fr.gz": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
    "val.cs.gz": "b63226e05c4bd5dd6a42897d74b86a1b9d2c31498252c572b1ea7f7996927fcc",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "val.fr.gz": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
}
"""the published files and their SHA-256"""

_WAITS_S = (1.0, 2.0, 4.0)
"""seconds before each repeated attempt to download a file"""

_log = logging.getLogger(__name__)


def published_splits(*languages: str) -> dict[str, tuple[str, ...]]:
    """Return the splits that the dataset publishes in all `languages`, and the file of each
    language. `languages` are those of the sources, then that of the target.

    Raises:
        UsageError: the dataset lacks a language, or a language occurs twice.
    """
    published = sorted({name.split(".")[1] for name in SHA256})
    for language in languages:
        if language not in published:
            raise UsageError(
                f"language {language!r}: Multi30k has {', '.join(published)}; choose one of these"
            )
    *sources, target = languages
    if target in sources:
        raise UsageError(f"data.target_language: {target!r} is also a source language; change one")
    splits = {}
    for split, name in SPLITS.items():
        files = tuple(f"{name}.{language}.gz" for language in languages)
        if SHA256.keys() >= set(files):
            splits[split] = files
    return splits


def fetch(
    data_dir: Path,
    source_dir: Path | None = None,
    *,
    languages: Sequence[str] = ("de", "en"),
) -> Path:
    """Put the files of some languages into `data_dir/multi30k/` and return that folder.

    Files in the folder that have the right SHA-256 are kept. Missing files are copied from
    `source_dir`, from the folder that `SEQ2SEQ_MULTI30K_DIR` names, or downloaded.

    After an interruption, every file under its final name is complete, and the next call fetches
    the missing files.

    Raises:
        UserError: a file cannot be copied or downloaded, or has the wrong SHA-256.
        UsageError: the dataset lacks a language.
    """
    directory = data_dir / "multi30k"
    missing = []
    for names in published_splits(*languages).values():
        missing += [name for name in names if not _is_verified(directory / name)]
    folder = source_dir or os.environ.get(SOURCE_DIR_VARIABLE)
    if missing:
        _log.info("Multi30k: %s from %s", plural(len(missing), "file"), folder or BASE_URL)
    for name in tqdm(missing, desc="Multi30k", unit="file", disable=None):
        origin = f"{folder or BASE_URL}/{name}"
        data = _read(Path(origin)) if folder else _download(origin)
        digest = hashlib.sha256(data).hexdigest()
        if digest != SHA256[name]:
            raise UserError(
                f"{origin}: wrong SHA-256 {digest[:12]}..., expected {SHA256[name][:12]}...; "
                "the file is damaged or not the published one, and was discarded: run again, or "
                "use another folder"
            )
        with atomic_path(directory / name) as temporary:
            temporary.write_bytes(data)
    return directory


def _is_verified(path: Path) -> bool:
    """Return whether a file exists and has the right SHA-256."""
    if not path.is_file():
        return False
    if sha256_of(path) == SHA256[path.name]:
        return True
    _log.warning("%s: damaged (wrong SHA-256); fetching it again", path)
    return False


def _read(path: Path) -> bytes:
    """Return the bytes of a file in a source folder. Raises UserError if the file does not
    exist."""
    if not path.is_file():
        raise UserError(f"{path}: no such file; a source folder must hold the published .gz files")
    return path.read_bytes()


def _download(url: str) -> bytes:
    """Return the bytes at a URL. A failed download is repeated after each of `_WAITS_S`. Raises
    UserError if all attempts fail."""
    for wait_s in (*_WAITS_S, None):
        try:
            with urllib.request.urlopen(url, timeout=30.0) as answer:
                return bytes(answer.read())
        # URLError, timeouts and broken connections are OSErrors; a truncated body is an
        # HTTPException
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, urllib.request.HTTPError):  # it holds the connection
                error.close()
            reason = str(error) or type(error).__name__
            if wait_s is None or "HTTP Error 404" in reason:
                break
            _log.warning("%s: %s; trying again in %g s", url, reason, wait_s)
            time.sleep(wait_s)
    raise UserError(
        f"{url}: cannot be downloaded ({reason}); run again, or name a folder that has the files: "
        f"`seq2seq prepare multi30k --source-dir FOLDER`, or set {SOURCE_DIR_VARIABLE}=FOLDER"
    )
