"""A package index shows README without the repository: every link and picture is absolute."""

import re

import pytest

from scripts.laboratory.harness.records import ROOT
from scripts.laboratory.pages.index import absolute_links

REPOSITORY = "https://github.com/owner/name"
README = (ROOT / "README.md").read_text("utf-8")
LINKS = re.findall(r"(!?)\[[^\]]*\]\(([^)\s]+)\)", absolute_links(README, REPOSITORY, "v1.0.0"))


@pytest.mark.parametrize(("mark", "target"), LINKS)
def test_a_link_of_readme_leads_to_a_file_of_the_tag_or_elsewhere(mark, target):
    assert target.startswith("https://")
    kind = "raw" if mark else "blob"
    base = f"{REPOSITORY}/{kind}/v1.0.0/"
    if target.startswith(REPOSITORY):
        path = target.removeprefix(base).partition("#")[0]
        assert (ROOT / path).is_file()
