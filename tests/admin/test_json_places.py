"""Which line of a JSON text a complaint's path speaks of."""

import pytest

from conductor_app.admin.json_places import line_of, lines_of_paths

TEXT = """{
  "name": "order",
  "tasks": [
    {
      "name": "a, b: {c}",
      "inputs": {}
    },
    {"name": "x",
     "list": [1,
              [2, 3]]}
  ],
  "last": "\\"quoted\\""
}"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("name", 2),
        ("tasks", 3),
        ("tasks[0]", 4),
        ("tasks[0].name", 5),
        ("tasks[1].name", 8),
        ("tasks[1].list[0]", 9),
        ("tasks[1].list[1][1]", 10),
        ("last", 12),
        ("tasks[0].missing", 4),
        ("tasks[7].name", 3),
        ("nowhere", 1),
        ("", 1),
    ],
)
def test_a_path_is_found_on_its_line_or_at_the_nearest_thing_around_it(path, line):
    assert line_of(path, lines_of_paths(TEXT)) == line
