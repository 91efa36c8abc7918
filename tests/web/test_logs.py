"""Lines of logs: without sequences for terminals, and escaped."""

import pytest

from conductor_app.web.documents import clean_log, mark_matches

ESCAPE = "\x1b"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain", "plain"),
        (f"{ESCAPE}[31mred{ESCAPE}[0m and not", "red and not"),
        (f"{ESCAPE}[38;5;200mfar{ESCAPE}[38;2;1;2;3m off", "far off"),
        (f"{ESCAPE}[2K{ESCAPE}[1Amoved", "moved"),
        (f"{ESCAPE}]8;;https://example.org{ESCAPE}\\link{ESCAPE}]8;;{ESCAPE}\\", "link"),
        (f"{ESCAPE}(B{ESCAPE}[mtext{ESCAPE}P1$r{ESCAPE}\\.", "text."),
        ("10 %\r50 %\rdone\r\n", "done"),
        (f"cut off {ESCAPE}[3", "cut off [3"),
        ("bell\x07 and\x00 null", "bell and null"),
        ("paid to \u202eyrollam\u202c, \x9b31mnot", "paid to yrollam, 31mnot"),
    ],
)
def test_sequences_for_terminals_are_left_out(given, shown):
    assert clean_log(given) == shown


def test_text_is_escaped_at_every_position():
    shown = mark_matches('<script>x</script><b onclick="x">&', "<b")

    assert "<script" not in shown and "<b " not in shown and '"x"' not in shown
    assert "<mark>&lt;b</mark>" in shown


def test_matches_are_marked_despite_case_and_special_characters():
    assert mark_matches("Error (a.b) error", "error") == "<mark>Error</mark> (a.b) <mark>error</mark>"
    assert mark_matches("Error (a.b) axb", "(a.b)") == "Error <mark>(a.b)</mark> axb"
