"""A workflow document as an indented list of steps."""

from conductor_app.admin.outline import outline
from tests.builders import catch, definition, step, try_


def test_the_parts_of_a_try_are_named():
    lines = outline(definition(try_("t", step("a"), on=[catch(step("c"))], default=[step("d")], last=[step("z")])))

    assert [(line.depth, line.ref or line.branch) for line in lines] == [
        (0, "t"),
        (1, "a"),
        (1, "catch 1"),
        (2, "c"),
        (1, "catch all else"),
        (2, "d"),
        (1, "finally"),
        (2, "z"),
    ]
