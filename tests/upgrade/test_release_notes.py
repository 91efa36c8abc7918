"""Release notes: each version of the changelog has a page, and pages link to one another."""

import re
from pathlib import Path

from conductor_app.processes.upgrade_check import BEHAVIOR_CHANGES, REMOVED_VARIABLES

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "release-notes"
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
VERSIONS = re.findall(r"^## .*?(\d+\.\d+\.\d+)", CHANGELOG, re.MULTILINE)
NEWEST = (FOLDER / f"{VERSIONS[0]}.md").read_text()


def test_each_version_of_the_changelog_has_release_notes_that_it_links_to():
    assert VERSIONS
    assert {path.stem for path in FOLDER.glob("*.md")} == {*VERSIONS, "index"}
    assert [version for version in VERSIONS if f"(docs/release-notes/{version}.md)" not in CHANGELOG] == []
    assert [version for version in VERSIONS if f"({version}.md)" not in (FOLDER / "index.md").read_text()] == []


def test_the_newest_notes_have_the_removed_variables_and_the_changes_of_behavior():
    texts = [*REMOVED_VARIABLES, *(change.text for change in BEHAVIOR_CHANGES)]

    assert [text for text in texts if text not in NEWEST] == []
    for title in ("Requirements", "Settings", "Definitions", "Migrations"):
        assert f"\n## {title}\n" in NEWEST
