"""Bundle the prepared corpus, its raw text and wheels for a machine without network.

Such a machine has Python, pip, a CUDA build of torch, and numpy, sacrebleu, safetensors,
matplotlib, tqdm and typer; it has no network. spaCy stays out: it would take four fifths of the
bundle, and no block tokenizes with it.
"""

import importlib.metadata
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from scripts.laboratory.harness.records import ROOT, describe
from seq2seq_attn.files import write_json

# sentencepiece and torchtext: their versions are part of what a prepared corpus is known by
PACKAGES = """
    typer pydantic pydantic_core annotated-types typing-inspection typing_extensions PyYAML
    sentencepiece torchtext requests urllib3 idna certifi charset-normalizer six
    tensorboard grpcio protobuf absl-py Markdown Werkzeug MarkupSafe
    pytest iniconfig pluggy packaging Pygments
    joeynmt==2.3.0 subword-nmt importlib-metadata==8.7.0 zipp
""".split()
PLATFORMS = [f"manylinux{kind}_x86_64" for kind in ("_2_28", "_2_27", "_2_17", "2014", "1")]
CORPUS, WHEELS = "corpus.tar.gz", "wheels"
SITE = ROOT / "build" / "gpu" / "site"
"""where `unpack` installs the wheels"""
ABOUT = SITE.with_name("bundle.json")
"""the commit of an unpacked bundle"""


def write(folder: Path, *, python_version: str) -> None:
    """Fill a folder with wheels of the installed versions, the prepared corpus, and the raw text
    that it can be prepared from again; print its size and the command that runs there."""
    from seq2seq_attn.config import load_config
    from seq2seq_attn.data.prepare import prepare_corpus
    from seq2seq_attn.text import multi30k

    shutil.rmtree(folder / WHEELS, ignore_errors=True)
    (folder / WHEELS).mkdir(parents=True)
    installed = {}
    for distribution in importlib.metadata.distributions():
        installed[distribution.name] = distribution.version
    # `pytest` is not installed without the development extra
    pins = [f"{name}=={installed[name]}" if name in installed else name for name in PACKAGES]
    platforms = [part for platform in PLATFORMS for part in ("--platform", platform)]
    options = f"--only-binary=:all: --implementation cp --python-version {python_version}".split()
    destination = ["--dest", str(folder / WHEELS)]
    pip("download", *options, *platforms, *destination, *pins)
    config = load_config(["multi30k"])
    languages = (config.data.source_language, config.data.target_language)
    raw = multi30k.fetch(config.data.data_dir, config.data.source_dir, languages=languages)
    names = [name for pair in multi30k.published_splits(*languages).values() for name in pair]
    with tarfile.open(folder / CORPUS, "w:gz") as archive:
        for member in (prepare_corpus(config).directory, *(raw / name for name in names)):
            archive.add(member, arcname=str(member))
    write_json(folder / ABOUT.name, {"git": describe("gpu")["git"], "python": python_version})
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{size / 2**20:.1f} MiB")
    print(
        "There, in a copy of the tracked files with this folder in its place:\n  scripts/gpu "
        f"--from {folder}"
    )


def unpack(folder: Path) -> Path:
    """Put the corpus in its place and install the wheels into a folder of their own, once; that
    folder."""
    about = (folder / ABOUT.name).read_text(encoding="utf-8")
    if ABOUT.is_file() and ABOUT.read_text(encoding="utf-8") == about:
        return SITE
    shutil.rmtree(SITE, ignore_errors=True)
    wheels = sorted(str(path) for path in (folder / WHEELS).glob("*.whl"))
    pip("install", "--no-index", "--target", str(SITE), *wheels)
    with tarfile.open(folder / CORPUS) as archive:
        archive.extractall(ROOT, filter="data")
    ABOUT.write_text(about, encoding="utf-8")  # last: an interrupted unpacking is done again
    return SITE


def pip(command: str, *arguments: str) -> None:
    """Run pip for packages as they are, without what they depend on."""
    pip = [sys.executable, "-m", "pip", command, "--quiet", "--no-deps"]
    subprocess.run([*pip, *arguments], check=True)
