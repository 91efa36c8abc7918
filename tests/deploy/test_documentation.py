"""The how-to pages of deployment name files that exist, and subcommands of the program."""

import re

import pytest

from conductor_app.processes.command_line import FURTHER_COMMANDS, SUBCOMMANDS
from tests.deploy.settings_in_code import ROOT

PAGES = sorted([*(ROOT / "docs" / "how-to").glob("deploy*.md"), ROOT / "docs" / "how-to" / "several-teams.md"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_files_of_a_page_exist(page):
    text = page.read_text()
    created = {f"deploy/compose/{name}" for name in ("secrets", "secrets/tls.crt", "conductor.env", "shop.env")}
    paths = re.findall(r"deploy/(?:docker|compose|helm|systemd|nginx|caddy)[\w./*-]*", text)
    named = {path.rstrip(".") for path in paths}
    links = re.findall(r"\]\(([^)#]+\.md)", text)

    assert named
    assert [path for path in named - created if not list(ROOT.glob(path))] == []
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_subcommands_of_a_page_exist(page):
    named = set(re.findall(r"conductor-app (user|key|\w+) ?(?:admin|orders-worker)?\n", page.read_text()))

    assert named and named <= {*SUBCOMMANDS, *FURTHER_COMMANDS}
