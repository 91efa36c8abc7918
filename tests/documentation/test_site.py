"""`make docs` builds a site without dead links, which needs no other host."""

import html
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = ROOT / ".venv" / "docs" / "bin" / "python"
RESOURCE = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)=\"?(https?:)?//", re.IGNORECASE)

ARTICLE = re.compile(r"<article.*?</article>", re.DOTALL)
TAG = re.compile(r"<[^>]+>")
BLOCK = re.compile(r"<(?!/?(?:a|code|em|span|strong)\b)[^>]+>")
"""Tags that end a word. Others, such as those of links and code, can stand within one."""

pytestmark = pytest.mark.skipif(
    not PYTHON.exists(), reason="`make .venv/for-docs` installs the tools of the documentation."
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [PYTHON, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return folder


def test_every_link_and_anchor_leads_to_a_page(site):
    """MkDocs fails on a dead link, and the fixture with it. This proves that there is something to check."""
    assert len(list(site.rglob("*.html"))) > 25


def test_a_reader_can_finish_the_site(site):
    """A reader finds the page for a question in the navigation. Shorten or merge pages before you raise a number."""
    pages = [path for path in site.rglob("*.html") if path.name != "404.html"]
    words = {path.relative_to(site).as_posix(): words_of(path.read_text()) for path in pages}

    assert len(pages) <= 45
    assert sum(words.values()) <= 45_000, sorted(words.items(), key=lambda item: -item[1])


def words_of(page: str) -> int:
    """Return the number of words of the article of a page: what stands between blanks, with a letter or a digit."""
    article = ARTICLE.search(page)
    assert article
    text = html.unescape(TAG.sub("", BLOCK.sub(" ", article[0])))
    return sum(any(character.isalnum() for character in word) for word in text.split())


def test_a_dead_link_or_anchor_fails_the_build(tmp_path):
    for name in ("mkdocs.yml", "docs", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "docs").unlink()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / ".site").symlink_to(ROOT / "docs" / ".site")
    (tmp_path / "docs" / "index.md").write_text("# Start\n\n[gone](gone.md) [nowhere](index.md#nowhere)\n")
    command = [PYTHON, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"]

    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert built.returncode == 1
    assert "'gone.md'" in built.stderr and "#nowhere" in built.stderr


def test_no_page_loads_anything_from_another_host(site):
    loading = [path.name for path in site.rglob("*.html") if RESOURCE.search(path.read_text())]

    assert loading == []


def test_every_page_is_in_the_navigation(site):
    start = (site / "index.html").read_text()
    pages = {path.relative_to(site).as_posix() for path in site.rglob("*.html")} - {"index.html", "404.html"}

    assert [page for page in sorted(pages) if f'href="{page}"' not in start] == []
