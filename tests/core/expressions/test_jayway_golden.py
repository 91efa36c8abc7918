"""Values of JSONPath expressions, compared to those of the Java library Jayway JsonPath."""

import json
from pathlib import Path

import pytest

from conductor_app.core.expressions import BadPath, compile_path

DATA = Path(__file__).parent / "data"
DOCUMENT = json.loads((DATA / "jayway-2.4-golden-doc.json").read_text())
ROWS = [line.split("\t") for line in (DATA / "jayway-2.4-golden.tsv").read_text().splitlines()]


def test_the_golden_file_is_complete():
    assert len(ROWS) == 153


@pytest.mark.parametrize(("path", "expected"), [row for row in ROWS if not row[1].startswith("!")])
def test_a_path_has_the_same_value_as_in_jayway(path, expected):
    # The texts are compared, because Java distinguishes 3.0 from 3 and the order of members matters.
    assert json.dumps(compile_path(path).read(DOCUMENT), separators=(",", ":")) == expected


@pytest.mark.parametrize("path", [path for path, expected in ROWS if expected.startswith("!")])
def test_a_path_that_jayway_refuses_is_refused(path):
    with pytest.raises(BadPath):
        compile_path(path)
