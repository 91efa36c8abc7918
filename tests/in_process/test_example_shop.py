"""The project `examples/shop`: its own tests pass, and the tutorial builds it."""

import os
import subprocess
import sys

from tests.docs.code_blocks import ROOT, read_code_blocks

SHOP = ROOT / "examples" / "shop"


def test_the_tests_of_the_shop_pass():
    environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    ended = subprocess.run(
        [sys.executable, "manage.py", "test", "--noinput"],
        cwd=SHOP,
        env=environment | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=False,
    )

    assert ended.returncode == 0 and "Ran 6 tests" in ended.stdout, ended.stdout


def test_the_tutorial_has_the_files_of_the_shop():
    text = (ROOT / "docs" / "tutorials" / "django-project.md").read_text(encoding="utf-8")
    files = {block.title: block.text for block in read_code_blocks(text) if block.is_file}

    assert len(files) == 5
    assert {name: (SHOP / name).read_text(encoding="utf-8") for name in files} == files
