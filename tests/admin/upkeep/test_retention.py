"""The page on which administrators say how long runs are kept."""

import pytest

from conductor_app.insight.retention import policies
from tests.builders import step
from tests.story import Story

pytestmark = pytest.mark.django_db


def test_the_page_shows_the_preview_and_changes_policies(operator, viewer, clock):
    page = "/admin/retention/"
    story = Story(clock, step("pay"))
    story.starts("order")
    for _ in range(2):
        story.worker("pay").completes()
    clock.advance(seconds=31 * 86_400)

    answer = operator.post(page, {"do": "save", "definition": "order", "days": "30", "failed_days": "90"}, follow=True)
    assert "2 runs, the first ended" in answer.content.decode().replace("</b>", "").replace("<b>", "")
    assert operator.post(page, {"do": "save", "days": "many"}, follow=True).status_code == 200
    operator.post(page, {"do": "remove", "definition": "order"})
    assert [policy.definition for policy in policies()] == [""]

    assert "conductor.change_retentionpolicy" in viewer.get(page).content.decode()
    assert viewer.post(page, {"do": "save", "days": "1"}).status_code == 403
