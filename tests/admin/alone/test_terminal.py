"""What was written for a terminal, as HTML: colours as classes, never markup of its own."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conductor_app.admin.alone.terminal import shown

ESC = "\x1b"


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("plain\n", "<li>plain</li>"),
        ("<b>&", "<li>&lt;b&gt;&amp;</li>"),
        (f"{ESC}[1;31mbad{ESC}[0m good", '<li><span class="bold ansi-1">bad</span> good</li>'),
        (f"{ESC}[32ma\nb{ESC}[39mc", '<li><span class="ansi-2">a</span></li><li><span class="ansi-2">b</span>c</li>'),
        (f"{ESC}[38;5;196mx{ESC}[48;2;1;2;3my{ESC}[m", "<li>xy</li>"),
        (f"{ESC}[2K{ESC}[1Aup{ESC}]0;title\x07{ESC}]8;;https://evil{ESC}\\link{ESC}]8;;{ESC}\\", "<li>uplink</li>"),
        ("10 %\r50 %\r100 %\r\n", "<li>100 %</li>"),
        ("\x00\x9b31m\u202egnp.exe", "<li>31mgnp.exe</li>"),
        ("ERROR it broke", '<li class="error">ERROR it broke</li>'),
        (f"{ESC}[93;4mw{ESC}[24mv", '<li><span class="ansi-3 underlined">w</span><span class="ansi-3">v</span></li>'),
    ],
)
def test_what_was_written_is_seen(written, seen):
    assert shown(written) == seen


def test_a_very_long_line_is_cut_and_says_by_how_much():
    assert "… 1,000" in shown("x" * 5_000)


@settings(max_examples=60)
@given(st.text(alphabet=st.sampled_from([*"<>&\"'[];m0139\n\r x\\]", ESC, "\x07", "\x9b", "é"]), max_size=60))
def test_nothing_becomes_markup_but_what_is_made_here(written):
    html = shown(written)

    tags = re.findall(r"<[^>]*>", html)
    assert all(re.fullmatch(r"</?li>|<li class=\"error\">|<span class=\"[a-z0-9 -]+\">|</span>", tag) for tag in tags)
    assert ESC not in html
