"""JSONPath dialect beyond the golden file: the tables of the references."""

import pytest

from conductor_app.core.expressions import BadPath, compile_path

DOCUMENT = {
    "arr": [10, 20, 30, 40, 50],
    "texts": ["b", "a", None],
    "mixed": [1, "x", 2.5, True],
    "items": [{"n": 1, "k": None}, {"n": 2, "s": "two"}, {"s": "three"}],
    "deep": {"n": 7, "list": [{"n": 8}]},
    "s": "text",
    "it's": "quoted",
    "nil": None,
    "yes": True,
    "big": 12345678901234567890,
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$", DOCUMENT),
        ("nil", None),
        ("s[0]", None),
        ("arr[*]", [10, 20, 30, 40, 50]),
        ("arr[1:-1]", []),
        ("arr[-3:-1]", [30, 40]),
        ("arr[-2:99]", [40, 50, 10, 20, 30, 40, 50]),
        ("arr[0:4:2]", [10, 20, 30, 40]),
        ("['it\\'s']", "quoted"),
        ('["it\'s"]', "quoted"),
        ("items[*].n", [1, 2]),
        ("items.*.n", [1, 2]),
        ("$..n", [1, 2, 7, 8]),
        ("$..*.n", [7, 1, 2, 8]),
        ("$..[0].n", [1, 2, 8]),
        ("items[?(@.k)].n", [1]),
        ("items[?(@.k == null)].n", [1]),
        ("items[?(!@.s)].n", [1]),
        ("items[?(!(@.n > 1) && @.n)].n", [1]),
        ("items[?(@.s =~ /T.*/i)].s", ["two", "three"]),
        ("items[?(@.s =~ /w/)].s", []),
        ("items[?(/t.*/ =~ @.s)].s", ["two", "three"]),
        ("items[?(@.s =~ /(?=t)t.*/)].s", ["two", "three"]),
        ("items[?(@.n in [1, 3])].n", [1]),
        ("items[?(@.n IN [1, 3])].n", [1]),
        ("items[?(@.n nin [1, 3])].n", [2]),
        ("items[?(@.n == '1')].n", [1]),
        ("items[?(@.n === '1')].n", []),
        ("items[?(@.n !== '1')].n", [1, 2]),
        ("items[?(@.n==1||@.n==2)].n", [1, 2]),
        ("items[?(@ == {'s': 'three'})].s", ["three"]),
        ("arr[?(@ >= $.arr[3])]", [40, 50]),
        ("deep[?(@.list[?(@.n == 0)])].n", [7]),
        ("mixed[?(@ == true)]", [True]),
        ("mixed[?(@ == 1)]", [1]),
        ("mixed.sum()", 3.5),
        ("texts.sum()", None),
        ("texts.concat()", "ba"),
        ("concat('a', \"b\", $.s)", "abtext"),
        ("concat(@.s, $.arr)", "text1020304050"),
        ("arr.append(60)", [10, 20, 30, 40, 50, 60]),
        ("arr.keys()", None),
        ("arr[*].keys()", []),
        ("s.length()", None),
        ("nil.length()", None),
        ("$..length()", []),
        ("items[*]['n','s']", [{"n": 1}, {"n": 2, "s": "two"}, {"s": "three"}]),
        ("$.['s']", "text"),
    ],
)
def test_a_path_has_its_value(path, expected):
    value = compile_path(path).read(DOCUMENT)

    assert value == expected
    assert type(value) is type(expected)


def test_a_descent_requires_a_root_or_a_name_before_it():
    assert compile_path("$..n").read(DOCUMENT) == [1, 2, 7, 8]
    with pytest.raises(BadPath):
        compile_path("..n")


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", "empty"),
        ("a.", "end with a dot"),
        ("$x", "unexpected character"),
        ("a b", "['my name']"),
        ("a[b]", "expected ['name']"),
        ("a['b", "quote is not closed"),
        ("a['b',]", "expected a quoted name"),
        ("a[:]", "a slice needs"),
        ("a[?(@.b ~ 1)]", "unknown operator '~'"),
        ("a[?(@.b == )]", "expected a value"),
        ("a[?(1)]", "expected an operator"),
        ("a[?(@.b =~ 'x')]", "regular expression between slashes"),
        ("a[?(@.b =~ /(/)]", "not a regular expression"),
        ("a.f(1", "expected ','"),
        ("a...b", "expected a name"),
    ],
)
def test_an_error_states_the_reason(path, problem):
    with pytest.raises(BadPath) as refusal:
        compile_path(path)

    assert problem in str(refusal.value)


def test_a_path_is_definite_or_indefinite():
    assert compile_path("a.b[0]['x','y']").is_definite
    assert not compile_path("a[*]").is_definite
    assert not compile_path("a['x','y'].z").is_definite


def test_a_path_is_compiled_only_one_time():
    assert compile_path("a.b.c") is compile_path("a.b.c")
