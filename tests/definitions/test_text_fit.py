"""Texts that fit into the boxes of a diagram."""

import pytest

from conductor_app.definitions.diagram.canvas import cut_middle, drop_shared_parts, join_first, join_fitting, text_width

LONG = "charge_credit_card_with_3d_secure_for_customers_in_the_eu"


def test_a_text_that_fits_is_not_changed():
    assert cut_middle("charge", 200) == "charge"


@pytest.mark.parametrize("width", [40, 90, 150, 260])
def test_a_long_text_loses_its_middle_and_fits(width):
    cut = cut_middle(LONG, width)

    begin, end = cut.split("…")
    assert text_width(cut) <= width and LONG.startswith(begin) and LONG.endswith(end)
    assert abs(len(begin) - len(end)) <= 1


def test_names_that_differ_at_the_end_still_differ_after_the_cut():
    assert cut_middle(f"{LONG}_1", 120) != cut_middle(f"{LONG}_2", 120)


def test_parts_with_the_highest_rank_are_left_out_first():
    parts = [(4, "SIMPLE"), (0, "Failed"), (1, "1.2 s"), (2, ""), (5, "worker-in-frankfurt-17")]

    assert join_fitting(parts, 400) == "SIMPLE · Failed · 1.2 s · worker-in-frankfurt-17"
    assert join_fitting(parts, 160) == "SIMPLE · Failed · 1.2 s"
    assert join_fitting(parts, 100) == "Failed · 1.2 s"


def test_counts_that_do_not_fit_are_left_out_at_the_end():
    counts = ["1 failed", "22 canceled", "17 completed"]

    assert join_first(counts, 300) == "1 failed, 22 canceled, 17 completed"
    assert join_first(counts, 180) == "1 failed, 22 canceled, …"
    assert join_first([], 180) == ""


def test_words_that_all_long_names_share_are_left_out():
    names = [f"test windows11-64-2009-qr/opt-mochitest-{kind}-fission-swr-headless" for kind in ("media", "plain")]

    assert drop_shared_parts([*names, "test a", "build"], 120) == {names[0]: "…media…", names[1]: "…plain…"}


def test_words_that_many_long_names_share_are_left_out_if_there_is_no_room():
    kinds = ("browser-chrome", "devtools-chrome", "plain-headless")
    names = [f"test {build} mochitest-{kind}-1" for build in ("linux64", "linux64-debug") for kind in kinds]

    short = drop_shared_parts(names, 170)

    assert short["test linux64 mochitest-browser-chrome-1"] == "…browser-chrome-1"
    assert short["test linux64-debug mochitest-browser-chrome-1"] == "…debug…browser…"
    assert len(set(short.values())) == len(names)


def test_the_first_word_and_as_much_as_fits_is_kept_on_request():
    names = [f"charge_credit_card_with_3d_secure_for_{region}_customers" for region in ("eu", "us")]

    assert list(drop_shared_parts(names, 200, keeps_start=True).values()) == [
        "charge…for_eu_customers",
        "charge…for_us_customers",
    ]


def test_names_that_would_become_the_same_are_only_cut_in_the_middle():
    names = ["check the big box of the east", "check the box of the east", "check the big box of the west"]

    assert drop_shared_parts(names, 60) == {names[2]: "…west"}


def test_names_without_a_word_of_their_own_are_only_cut_in_the_middle():
    assert drop_shared_parts(["check the first after the second", "check the second after the first"], 60) == {}


def test_a_name_without_others_like_it_keeps_all_its_parts():
    assert drop_shared_parts([LONG], 100) == {}
