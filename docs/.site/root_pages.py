"""Add the changelog to the site, and let links between it and the pages lead there.

The root is where hosts of repositories expect it. MkDocs reads only the folder `docs`. While the package
is published nowhere, the pages install it from a checkout or from Git.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("CHANGELOG.md",)
FOLDER = "project"
TO_DOCUMENT = re.compile(rf"\]\((?P<up>(?:\.\./)+)(?P<name>{'|'.join(map(re.escape, DOCUMENTS))})")
IS_PUBLISHED = False
"""Whether a package index has the package, under a name that is registered for this project."""
GIT = re.compile(r" @ git\+https://git\.example\.org/conductor-app@v[\d.]+")
TO_PAGE = re.compile(r"\]\(docs/")


def on_files(files: Files, config: Any) -> Files:
    """Add each document as a page of the folder `project`."""
    for name in DOCUMENTS:
        text = TO_PAGE.sub("](../", (ROOT / name).read_text())
        files.append(File.generated(config, f"{FOLDER}/{name}", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Let links that leave the folder `docs` for a document lead to its page."""
    if IS_PUBLISHED:
        markdown = GIT.sub("", markdown.replace("/path/to/the/checkout", "conductor-app"))
    depth = page.file.src_uri.count("/")
    return TO_DOCUMENT.sub(lambda link: f"]({'../' * depth}{FOLDER}/{link['name']}", markdown)
