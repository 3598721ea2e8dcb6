"""Prepare README and the addresses of the project for a package index. Links in README then lead to
the repository at the release's tag."""

import re

from scripts.laboratory.harness.records import ROOT
from seq2seq_attn.files import write_text


def write(repository: str, tag: str) -> None:
    """Change README.md and pyproject.toml for the release `tag` of a repository, in place."""
    readme = ROOT / "README.md"
    write_text(readme, absolute_links(readme.read_text(encoding="utf-8"), repository, tag))
    project = ROOT / "pyproject.toml"
    heading = "[project.urls]\n"
    addresses = (
        f'Repository = "{repository}"\n'
        f'Issues = "{repository}/issues"\n'
        f'Changelog = "{repository}/blob/{tag}/CHANGELOG.md"\n'
    )
    text = project.read_text(encoding="utf-8")
    write_text(project, text.replace(heading, heading + addresses))


def absolute_links(text: str, repository: str, tag: str) -> str:
    """Return Markdown whose links and pictures lead to the files of a tag. Links to headings of the
    same page stay."""
    picture = r"(!\[[^\]]*\]\()(?!https?:)"
    link = r"(\]\()(?!https?:|#)"
    text = re.sub(picture, rf"\1{repository}/raw/{tag}/", text)
    return re.sub(link, rf"\1{repository}/blob/{tag}/", text)
