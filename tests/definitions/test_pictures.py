"""Diagrams as pages render them: icons, and the attributes that scripts rely on."""

import re
from pathlib import Path

from django.template.loader import render_to_string

from conductor_app.core.step_types import STEP_TYPES
from conductor_app.definitions.diagram.pages import MANY_ICON, draw_definition, step_icon
from tests.builders import loop, simple

ICONS = Path(__file__).parents[2] / "static" / "ops" / "icons.svg"
LOOP = loop("poll", simple("ask <b>"), times=3)
DOCUMENT = {"tasks": [simple("first"), LOOP]}


def render(**options) -> str:
    picture = draw_definition(DOCUMENT, **options)
    return " ".join(render_to_string("ops/definitions/diagram.html", {"picture": picture, "name": "order"}).split())


def test_each_step_type_has_an_icon_in_the_sprite():
    known = set(re.findall(r'<symbol id="([^"]+)"', ICONS.read_text()))

    assert {MANY_ICON, *map(step_icon, STEP_TYPES)} <= known
    assert len(set(map(step_icon, STEP_TYPES))) > 12


def test_a_type_of_a_worker_of_its_own_has_the_icon_of_a_task():
    assert step_icon("MY_TYPE") == step_icon("SIMPLE")


def test_boxes_and_lines_have_their_paths_and_names_are_escaped():
    drawn = render()

    assert 'data-ref="first" data-path="tasks[0]"' in drawn
    assert 'data-ref="ask &lt;b&gt;" data-path="tasks[1].loopOver[0]"' in drawn and "<b>" not in drawn
    assert 'data-insert="tasks[1]" data-after="first"' in drawn
    assert 'data-insert="tasks[1].loopOver[0]" data-after=""' in drawn
    assert "diagram-insert" not in drawn


def test_buttons_that_insert_steps_are_drawn_on_request():
    drawn = render(can_insert=True)

    assert drawn.count('class="diagram-insert"') == 5


def test_an_empty_definition_can_receive_its_first_step():
    picture = draw_definition({"tasks": []}, can_insert=True)

    assert 'data-insert="tasks[0]"' in render_to_string(
        "ops/definitions/diagram.html", {"picture": picture, "name": "new"}
    )
    assert "No steps yet." in render_to_string(
        "ops/definitions/diagram.html", {"picture": draw_definition({}), "name": "new"}
    )
