"""Roles and the scopes that they expand to (taskcluster §6.5)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core.errors import Forbidden
from conductor_app.taskcluster.auth.scopes import assumes_itself, expand_scopes, scope_set
from tests.hypothesis_profile import property_settings

ROLES = {
    "build": ["queue:build", "assume:upload"],
    "upload": ["artifacts:write"],
    "repo:*": ["queue:route:<..>", "assume:project:<..>:read", "log"],
    "project:shop:read": ["secrets:shop"],
    "all:*": ["queue:all:<..>/x"],
}
EXPANDED = {
    "no role": (["a"], ["a"]),
    "a role, and one that it assumes": (["assume:build"], ["queue:build", "assume:upload", "artifacts:write"]),
    "a role that is not there": (["assume:builder"], []),
    "a role by a star": (["assume:b*"], ["queue:build", "assume:upload", "artifacts:write"]),
    "a role for many, with what came for its star": (
        ["assume:repo:shop"],
        ["log", "queue:route:shop", "assume:project:shop:read", "secrets:shop"],
    ),
    "the rest of a star that came for the star": (["assume:all:a*"], ["queue:all:a*"]),
    "a star before the star": (["assume:al*"], ["queue:all:*"]),
    "nothing for the star": (["assume:all:"], ["queue:all:/x"]),
    "a literal star in the rest": (["assume:all:a*b"], ["queue:all:a*b"]),
}


@pytest.mark.parametrize("case", EXPANDED)
def test_scopes_are_expanded(case):
    scopes, implied = EXPANDED[case]

    assert set(expand_scopes(scopes, ROLES)) == {*scopes, *implied}


def test_a_beginning_of_assume_with_a_star_assumes_all_roles():
    for scope in ("assume:*", "assume*", "a*"):
        assert {"queue:build", "secrets:shop", "queue:route:*"} <= set(expand_scopes([scope], ROLES))


def test_the_all_scope_is_not_expanded():
    assert expand_scopes(["*", "assume:build"], ROLES) == ["*"]


def test_cyclic_roles_expand_in_finite_time():
    assert expand_scopes(["assume:a"], {"a": ["assume:b", "x"], "b": ["assume:a", "y"]}) == [
        "assume:a", "assume:b", "x", "y",
    ]  # fmt: skip


ENDLESS = {
    "itself": ({"a": ["assume:a"]}, True),
    "by way of another": ({"a": ["assume:b"], "b": ["assume:a"]}, True),
    "itself, growing": ({"a*": ["assume:a<..>x"]}, True),
    "by way of another's star": ({"a": ["assume:b:1"], "b:*": ["assume:<..>"]}, True),
    "all roles": ({"a": ["assume:*"]}, True),
    "another": ({"a": ["assume:b"], "b": ["x"]}, False),
    "another, with what came for the star": ({"a*": ["assume:b:<..>"], "b:*": ["x:<..>"]}, False),
    "nothing, for it may do everything": ({"a": ["*"]}, False),
}


@pytest.mark.parametrize("case", ENDLESS)
def test_a_role_assumes(case):
    roles, is_endless = ENDLESS[case]

    assert assumes_itself("a" if "a" in roles else "a*", roles) is is_endless


def test_roles_that_double_with_each_level_are_stopped_before_memory_is_exhausted():
    doubling = {
        f"r{level}:*": [f"assume:r{level + 1}:<..>a", f"assume:r{level + 1}:<..>b", "x:<..>"] for level in range(30)
    }

    with pytest.raises(Forbidden, match="more than 10000 scopes"):
        expand_scopes(["assume:r0:x"], doubling)


TEXT = st.text("ab:", max_size=3)
ENDED = st.builds("{}{}".format, TEXT, st.sampled_from(["", "*"]))


@property_settings(60)
@given(
    scopes=st.lists(st.builds("assume:{}".format, ENDED), max_size=3),
    roles=st.dictionaries(ENDED, st.lists(st.builds("{}{}".format, st.sampled_from(["x:<..>", "y", ""]), ENDED))),
)
def test_an_expansion_contains_its_scopes_and_is_idempotent(scopes, roles):
    once = expand_scopes(scopes, roles)

    assert all(scope in scope_set(once) for scope in scopes)
    assert expand_scopes(once, roles) == once
