"""The log of an attempt as a list of lines: colors as classes, never markup of its own."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.taskcluster.pages.tasks import render_log_lines
from tests.hypothesis_profile import property_settings

ESC = "\x1b"


def item(html: str, about: str = "") -> str:
    return f'<li{about}><span class="text">{html}</span></li>'


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("", item("")),
        ("plain\n", item("plain")),
        ("<b>&\n\n  more", item("&lt;b&gt;&amp;") + item("") + item("  more")),
        (f"{ESC}[32ma\nb{ESC}[39mc", item("a") + item("bc")),
        ("10 %\r50 %\r100 %\r\n", item("100 %")),
        ("ERROR it broke", item("ERROR it broke", ' class="error"')),
    ],
)
def test_a_log_is_displayed_line_by_line(written, seen):
    assert render_log_lines(written) == seen


def test_a_very_long_line_is_truncated_with_its_length():
    long = render_log_lines(f"{'j' * 3_000}{ESC}[31m{'z' * 2_000}")

    assert "… 1,000" in long
    assert (long.count("j"), long.count("z")) == (3_000, 1_000)


@property_settings(60)
@given(st.text(alphabet=st.sampled_from([*"<>&\"'[];m0139\n\r x\\]", ESC, "\x07", "\x9b", "é"]), max_size=60))
def test_log_content_never_becomes_markup(written):
    html = render_log_lines(written)

    tags = re.findall(r"<[^>]*>", html)
    assert all(re.fullmatch(r"</?li>|<li class=\"error\">|<span class=\"[a-z0-9 -]+\">|</span>", tag) for tag in tags)
    assert ESC not in html
