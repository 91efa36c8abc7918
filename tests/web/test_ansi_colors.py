"""ANSI escape sequences become styled elements, and all other text is escaped."""

import pytest

from conductor_app.web.documents import strip_colors, styled_pieces, to_html

ESCAPE = "\x1b"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("plain", "plain"),
        (f"{ESCAPE}[31mred{ESCAPE}[0m and not", '<span class="ansi-ink-red">red</span> and not'),
        (f"{ESCAPE}[1;4;92mloud{ESCAPE}[m", '<span class="ansi-bold ansi-underline ansi-ink-green">loud</span>'),
        (f"{ESCAPE}[1mbold{ESCAPE}[22m not", '<span class="ansi-bold">bold</span> not'),
        (f"{ESCAPE}[41mground{ESCAPE}[49m none", '<span class="ansi-ground-red">ground</span> none'),
        (f"{ESCAPE}[38;5;12mblue", '<span class="ansi-ink-blue">blue</span>'),
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
def test_ansi_colors_are_converted_to_markup(given, shown):
    assert to_html(given) == shown


def test_text_is_escaped_at_every_position():
    hostile = f'<script>x</script>{ESCAPE}[31m<b onclick="x">&{ESCAPE}[0m'

    shown = to_html(hostile, find="<b")

    assert "<script" not in shown and "<b " not in shown and '"x"' not in shown
    assert "<mark>&lt;b</mark>" in shown


def test_matches_are_marked_despite_case_and_special_characters():
    assert to_html("Error (a.b) error", find="error") == "<mark>Error</mark> (a.b) <mark>error</mark>"
    assert to_html("Error (a.b) axb", find="(a.b)") == "Error <mark>(a.b)</mark> axb"


def test_numbers_beyond_all_colors_do_no_harm():
    assert strip_colors(f"{ESCAPE}[{'9' * 500};38m{ESCAPE}[38;5mx{ESCAPE}[:;;;my") == "xy"


def test_a_long_line_of_color_codes_is_processed_in_one_pass():
    assert sum(1 for _ in styled_pieces(f"{ESCAPE}[31mx" * 2_000)) == 2_000
