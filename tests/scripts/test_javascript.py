"""Results of JavaScript scripts, and their isolation from each other and from the server."""

import math

import pytest

LIMIT, LONG_LIMIT = 0.3, 20


@pytest.fixture
def run(pool):
    return lambda source, inputs=None: pool.evaluate("javascript", source, inputs or {}, LIMIT)


@pytest.fixture
def run_patiently(pool):
    """Return what evaluates a script that reaches another limit than that of its time, also on a busy machine."""
    return lambda source, inputs=None: pool.evaluate("javascript", source, inputs or {}, LONG_LIMIT)


VALUES = {
    "a sum of the input": ("$.a + 1", 2),
    "the last expression": ("1; const a = 5; a", 5),
    "a function that is called": ("(function () { return $.a })()", 1),
    "a function that is declared and called": ("function e() { return $.a } e();", 1),
    "undefined": ("undefined", None),
    "no source": ("", None),
    "null": ("null", None),
    "a symbol": ("Symbol('a')", None),
    "a function": ("() => 1", {}),
    "NaN": ("0 / 0", "NaN"),
    "infinity": ("[1 / 0, -1 / 0]", ["Infinity", "-Infinity"]),
    "a whole number": ("5.0", 5),
    "minus zero": ("-0", 0),
    "a number of more than 32 bits": ("2 ** 53", 2**53),
    "a number with a fraction": ("1.5", 1.5),
    "the largest of 64 bits": ("2n ** 63n - 1n", 2**63 - 1),
    "a number beyond 64 bits": ("2 ** 63", 2.0**63),
    "a number with an exponent": ("1e300", 1e300),
    "a BigInt": ("10n ** 17n + 1n", 10**17 + 1),
    "a large BigInt": ("10n ** 30n", 10**30),
    "a BigInt beyond all numbers": ("10n ** 400n", "Infinity"),
    "a date": ("new Date()", {}),
    "a map": ("new Map([['a', 1], [2, new Map()]])", {"a": 1, "2": {}}),
    "members that JSON drops": ("({ a: undefined, b: Symbol('x'), c() {} })", {"a": None, "b": None, "c": {}}),
    "holes": ("[1, , undefined]", [1, None, None]),
    "a lone surrogate": ("['a\\ud800', { '\\udfff': 1 }]", ["a\ufffd", {"\ufffd": 1}]),
    "a surrogate pair": ("'\\ud83d\\ude00'", "😀"),
    "a null character": ("'a\\0b'", "a\0b"),
    "a member called __proto__": ("({ ['__proto__']: { a: 1 } })", {"__proto__": {"a": 1}}),
    "a promise": ("Promise.resolve(1)", {}),
    "a method called toJSON": ("({ toJSON() { return 5 } })", {"toJSON": {}}),
    "changes to the input": ("$.a = 2; delete $.l; $", {"a": 2, "m": {"k": 3}}),
    "an object 200 deep": ("let o = 1; for (let i = 0; i < 200; i++) o = [o]; JSON.stringify(o).length", 401),
}


@pytest.mark.parametrize(("source", "value"), VALUES.values(), ids=VALUES)
def test_the_value_of_a_script_is_converted_to_json(run, source, value):
    result = run(source, {"a": 1, "l": [1, 2], "m": {"k": 3}})

    assert (result.error, result.value) == (None, value)
    assert type(result.value) is type(value)


def test_an_input_arrives_unchanged(run):
    inputs = {"text": "é😀\u2028\"'`${", "big": 2**53, "part": 0.1, "deep": [[{"a": None}]], "__proto__": 1, "size": 5}

    assert run("$", inputs).value == inputs


ID = 822106502566256641
EXACT = {
    "passed on": ("$.x", ID),
    "in an object": ("({ id: $.x, all: $.l.filter(each => each > 5) })", {"id": ID, "all": [ID]}),
    "beyond 64 bits": ("$.big", 2**70),
    "as text": ("`id ${$.x} ` + String($.x) + $.x.toString()", f"id {ID} {ID}{ID}"),
    "compared with a text": (f"$.x == '{ID}'", True),
    "compared with a number": ("$.x > 10 && $.x < 1e18 && $.x != $.x - 1n", True),
    "in a switch": (f"switch ($.x) {{ case {ID}n: 'found' }}", "found"),
    "through JSON": ("JSON.parse(JSON.stringify($)).l", [1, ID, -ID]),
    "in a JSON text": (f"JSON.parse('{{\"id\": {ID}}}').id", ID),
    "summed as BigInts": ("$.x + 1n", ID + 1),
    "rounded on purpose": ("Number($.x) / 1e6 > 822106502566", True),
    "as digits of a text": ("JSON.parse('[\"822106502566256641\", 1.5, 12345678901234567.0]')[0]", str(ID)),
}


@pytest.mark.parametrize(("source", "value"), EXACT.values(), ids=EXACT)
def test_an_integer_beyond_2_to_the_53_keeps_its_digits(run, source, value):
    result = run(source, {"x": ID, "l": [1, ID, -ID], "big": 2**70})

    assert (result.error, result.value) == (None, value)
    assert type(result.value) is type(value)


@pytest.mark.parametrize("source", ["$.x + 1", "$.x * 2.5", "Math.floor($.x)", "+$.x", "new Date($.x)", "isNaN($.x)"])
def test_arithmetic_that_would_round_an_integer_fails_and_says_what_to_write(run, source):
    error = run(source, {"x": ID}).error

    assert error.startswith("TypeError: ")
    assert "integers beyond 2^53 are BigInts" in error
    assert "Number($.id)" in error


def test_every_evaluation_starts_with_a_clean_state(run):
    run("globalThis.left = 1; Object.prototype.left = 2; const kept = 3")

    assert run("typeof left + typeof kept").value == "undefinedundefined"


def test_the_input_has_the_methods_of_javas_maps_and_lists(run):
    inputs = {"list": [4, 5], "map": {"a": 1, "b": None}}

    assert run("[$.list.size(), $.list.get(1), $.map.size(), $.map.get('a'), $.get('map').size()]", inputs).value == [
        2, 5, 2, 1, 2,
    ]  # fmt: skip
    assert run("[$.map.get('c'), $.map.get('toString')]", inputs).value == [None, None]


def test_polyfilled_methods_are_not_enumerable(run):
    source = """
    const seen = []; for (const name in $) seen.push(name);
    $.map.size(); $.map.size = 3;
    [seen, Object.keys($.map), Object.defineProperty({}, 'x', { value: 1 }).x, new Proxy({ y: 2 }, {}).y, $.own.size]
    """

    assert run(source, {"map": {"a": 1}, "own": {"size": 9}}).value == [["map", "own"], ["a", "size"], 1, 2, 9]


def test_a_missing_member_stays_undefined_without_a_method_call(run):
    assert run("$.size || 'M'").value == "M"


ERRORS = {
    "an unknown name": ("\n\nx", "ReferenceError: x is not defined (line 3)"),
    "a member of undefined": ("$.a.b.c", "TypeError: cannot read property 'c' of undefined (line 1)"),
    "bad syntax": ("let a = ;", "SyntaxError: unexpected token in expression: ';' (line 1)"),
    "bad syntax on another line": ("let a = 1;\nfoo(", "(line 2)"),
    "a thrown text": ("throw 'no funds'", "no funds"),
    "a thrown object": ("throw { code: 5 }", '{"code":5}'),
    "a thrown null": ("throw null", "The script threw null or exceeded its memory limit."),
    "a thrown undefined": ("throw undefined", "undefined"),
    "a thrown symbol": ("throw Symbol('a')", "Symbol(a)"),
    "an error of the script": ("class Poor extends Error {} throw new Poor('no funds')", "Error: no funds (line 1)"),
    "an error that cannot be described": ("throw { get a() { throw 1 } }", "something that cannot be described"),
    "an error whose text throws": (
        "throw { __proto__: Error.prototype, toString() { throw 1 } }",
        "cannot be described",
    ),
    "a proxy that throws": ("throw new Proxy({}, { getPrototypeOf() { throw 1 } })", "cannot be described"),
    "a very long message": ("throw new Error('x'.repeat(1e6))", "Error: xxx"),
    "a forged interruption": ("throw new InternalError('interrupted')", "InternalError: interrupted (line 1)"),
    "deep recursion": ("(function f() { return f() + 1 })()", "RangeError: Maximum call stack size exceeded (line 1)"),
    "a circular reference": ("let a = {}; a.a = a; a", "nested deeper than 200 levels, or contains itself"),
    "several circular references": (
        "let a = []; a.push(a, a, a); a",
        "nested deeper than 200 levels, or contains itself",
    ),
    "a map that contains itself": (
        "let a = new Map(); a.set('a', a); a",
        "nested deeper than 200 levels, or contains itself",
    ),
    "201 levels": ("let o = 1; for (let i = 0; i < 201; i++) o = { o }; o", "nested deeper than 200 levels"),
    "a getter that throws": ("({ get a() { throw new Error('mine') } })", "Error: mine (line 1)"),
    "a script that blocks": ("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)", "TypeError"),
    "a module": ("import('os'); import x from 'std'", "SyntaxError"),
    "the std module": ("std.getenv('PATH')", "ReferenceError: std is not defined"),
    "a result of more than 10 MB": ("'x'.repeat(11 * 2 ** 20)", "The script's result is larger than 10 MB."),
    "a result of more than 10 MB in UTF-8": ("'é'.repeat(6 * 2 ** 20)", "The script's result is larger than 10 MB."),
}


@pytest.mark.parametrize(("source", "sentence"), ERRORS.values(), ids=ERRORS)
def test_a_script_that_fails_is_explained_in_a_sentence(run_patiently, source, sentence):
    result = run_patiently(source, {"a": {}})

    assert sentence in result.error
    assert len(result.error) <= 2000
    assert (result.value, result.timed_out) == (None, False)


def test_a_result_200_levels_deep_is_returned(run):
    value = run("let o = 1; for (let i = 0; i < 200; i++) o = i % 2 ? [o] : { o }; o").value

    levels = 0
    while value != 1:
        value, levels = value[0] if isinstance(value, list) else value["o"], levels + 1
    assert levels == 200


MEMORY_HOGS = {
    "endless objects": "const a = []; while (true) a.push({})",
    "one large buffer": "new ArrayBuffer(1e9)",
    "a huge text": "'x'.repeat(2 ** 29)",
}


@pytest.mark.parametrize("source", MEMORY_HOGS.values(), ids=MEMORY_HOGS)
def test_a_script_that_exhausts_the_memory_is_stopped(run_patiently, source):
    assert run_patiently(source).error == "The script used more than 64 MB of memory and was stopped."


def test_memory_exhaustion_without_an_exception_is_reported(run):
    assert "memory" in run("const a = []; while (true) a.push(new Array(1000).fill(1))").error


ENDLESS = {
    "a loop": "while (true);",
    "a loop that catches everything": "while (true) { try { while (true); } catch { continue } finally { continue } }",
    "a getter of the result": "({ get a() { while (true); } })",
    "a proxy as the result": "new Proxy([], { get: (_, name) => name === 'length' ? 1e12 : 1 })",
    "a text of a thrown object": "throw { __proto__: Error.prototype, toString() { while (true); } }",
    "a regular expression": "/(a+)+$/.test('a'.repeat(40) + 'b')",
    "repeated recursion": "function f() { try { f() } finally { f() } } f()",
    "a huge empty array": "new Array(4294967295)",
    "a script that only the kernel can stop": "new Array(2 ** 31).join('x')",
}


@pytest.mark.parametrize("source", ENDLESS.values(), ids=ENDLESS)
def test_an_endless_script_is_stopped_at_its_limit(pool, run, source):
    result = pool.evaluate("javascript", source, {}, 0.1)

    assert (result.error, result.timed_out) == ("The script ran longer than 0.1 s and was stopped.", True)
    assert run("1").value == 1


POLLUTION = """
const evil = () => 'evil', fail = () => { throw new TypeError('reached') };
const { defineProperty, prototype: top } = Object;
for (const type of [Object, Array, String, Number, Map, RegExp]) type.prototype.toJSON = evil;
for (const name of ['a', 'n', 'copy', 'depth', 'logs', 'error', 'value']) {
  defineProperty(top, name, { __proto__: null, set: fail, configurable: true });
}
String.prototype.toWellFormed = String.prototype.slice = RegExp.prototype.exec = fail;
Array.prototype[Symbol.iterator] = Map.prototype.forEach = Function.prototype.call = Function.prototype.apply = fail;
JSON.stringify = JSON.parse = JSON.rawJSON = fail;
Reflect.apply = Array.isArray = Object.keys = Object.create = Object.setPrototypeOf = Object.hasOwn = fail;
BigInt.asIntN = String = Number = isFinite = Map = Date = Error = fail;
"""


def test_a_script_that_redefines_built_ins_affects_only_itself(run):
    assert run(POLLUTION + "; ({ ['a']: [1, 'b', 2n], n: null })").value == {"a": [1, "b", 2], "n": None}
    assert run(POLLUTION + "; console.log('x', { n: 1 }); $").logs == ('x {"n":1}',)
    assert "reached" not in run(POLLUTION + "; nothere").error
    assert run("[1]").value == [1]


def test_a_setter_on_the_first_element_of_every_array_affects_only_its_script(run):
    result = run("Object.defineProperty(Array.prototype, 0, { set() { throw 4 } }); [1]")

    assert result.error is None or "cannot be serialized" in result.error
    assert run("[1]").value == [1]


def test_logged_lines_are_returned_with_the_result(run):
    result = run("console.log('a', { b: [1, undefined] }); console.warn(new Error('c')); console.error(null, 5n); 7")

    assert (result.value, result.logs) == (7, ('a {"b":[1,null]}', "Error: c", "null 5"))


def test_lines_logged_before_a_failure_are_returned(run, pool):
    assert run("console.info('so far'); x").logs == ("so far",)
    # The limit is in CPU time. On a busy machine that takes longer, and the kernel ends the process a second later.
    assert pool.evaluate("javascript", "console.info('so far'); while (true);", {}, 0.02).logs == ("so far",)


def test_a_script_that_logs_too_much_is_cut_off(run):
    logs = run(
        "for (let i = 0; i < 1000; i++) console.log('x'.repeat(5000)); console.log({ get a() { throw 1 } })"
    ).logs

    assert (len(logs), max(map(len, logs))) == (100, 1000)
    assert run("console.log({ get a() { throw 1 } })").logs == ("[unreadable]",)


def test_an_input_that_json_cannot_represent_is_rejected(run):
    for value in (math.nan, {1, 2}, object()):
        assert run("1", {"a": value}).error.startswith("The script's inputs cannot be converted to JSON")


def test_a_source_that_is_not_a_string_is_refused(run):
    assert run({"a": 1}).error == "The script must be a string."


def test_an_input_of_more_than_16_mb_is_refused(run):
    assert run("1", {"a": "x" * (16 << 20)}).error == "The script and its inputs are larger than 16 MB."


def test_a_large_input_is_read(pool):
    assert pool.evaluate("javascript", "$.a.length", {"a": ["x" * 1000] * 10_000}).value == 10_000
