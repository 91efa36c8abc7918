"""What a script in Python may give back, and that nothing it does reaches further than its own answer."""

import json
import os
import signal
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.scripts.pool import Pool

LIMIT = 2


@pytest.fixture(scope="module")
def pool():
    pool = Pool(size=1)
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def run(pool):
    return lambda source, inputs=None: pool.evaluate("python", source, {} if inputs is None else inputs, LIMIT)


VALUES = {
    "a sum of an input": ("return a + 1", 2),
    "nothing returned": ("a + 1", None),
    "no statement": ("# nothing", None),
    "None": ("return None", None),
    "a truth": ("return a == 1", True),
    "an integer": ("return 5", 5),
    "a float that is whole": ("return 5.0", 5.0),
    "minus zero": ("return -0.0", -0.0),
    "an integer beyond 64 bits": ("return 2 ** 70", 2**70),
    "an integer beyond all floats": ("return 10 ** 400", 10**400),
    "a float with an exponent": ("return 1e300", 1e300),
    "not a number": ("return float('nan')", "NaN"),
    "infinity": ("return [float('inf'), float('-inf')]", ["Infinity", "-Infinity"]),
    "text": ("return 'é😀\\0\\u2028'", "é😀\0\u2028"),
    "half of a surrogate pair": ("return 'a\\ud800'", "a\ufffd"),
    "a dict and a list": ("return {'a': [a, {}]}", {"a": [1, {}]}),
    "a tuple": ("return (1, (2,))", [1, [2]]),
    "keys that JSON writes as text": ("return {1: 'a', None: 'b'}", {"1": "a", "null": "b"}),
    "members of the inputs": ("return [m['k'], m.get('x'), l[0], len(l)]", [3, None, 1, 2]),
    "a loop and a branch": ("t = 0\nfor x in l:\n    if x > 1:\n        t += x\nreturn t", 2),
    "lines that end as on Windows": ("b = a\r\nreturn b", 1),
    "a function of its own": ("def double(a):\n    return 2 * a\nreturn double(4)", 8),
    "a function that reads an input": ("def f():\n    return a\nreturn f()", 1),
    "an input that is assigned": ("a += 1\nreturn a", 2),
    "an input that a loop assigns": ("for a in [7]:\n    pass\nreturn a", 7),
    "an annotated input": ("a: int = 3\nreturn a", 3),
    "tabs": ("if a:\n\treturn 1", 1),
    "a text of several lines": ("return '''a\n  b\n'''", "a\n  b\n"),
    "a formatted text of several lines": ("return f'''{a}\n {a}'''", "1\n 1"),
    "a text continued on the next line": ("return 'a\\\n b'", "a b"),
    "a module": ("import json, re\nreturn json.loads(re.sub('x', '1', '[x]'))", [1]),
    "a pattern": ("match m:\n    case {'k': k}:\n        return k", 3),
}


@pytest.mark.parametrize(("source", "value"), VALUES.values(), ids=VALUES)
def test_the_value_of_a_script_is_its_return_value(run, source, value):
    answer = run(source, {"a": 1, "l": [1, 2], "m": {"k": 3}})

    assert (answer.error, answer.value) == (None, value)
    assert type(answer.value) is type(value)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(JSON)
def test_any_json_value_is_returned_unchanged(run, value):
    answer = run("return value", {"value": value})

    assert answer.error is None
    assert json.dumps(answer.value, sort_keys=True) == json.dumps(value, sort_keys=True)


def test_an_input_is_a_variable_even_if_its_name_is_that_of_a_built_in_or_not_in_ascii(run):
    assert run("return [größe, len, print, json]", {"größe": 1, "len": 2, "print": 3, "json": 4}).value == [1, 2, 3, 4]


def test_an_input_whose_name_is_no_identifier_is_ignored(run):
    inputs = {"a-b": 1, "class": 2, "": 3, "1a": 4, "__inputs__": 5, "__debug__": 6, "a": 7, "\ud800": 8, "x = 1\ny": 9}

    assert run("return a", inputs).value == 7


def test_half_a_character_in_an_input_becomes_a_sign_for_it(run):
    assert run("return a", {"a": "\ud800\\ud800😀"}).value == "\ufffd\\ud800😀"


def test_inputs_that_are_no_object_have_no_names(run):
    assert run("return 1", [1, 2]).value == 1


def test_every_evaluation_starts_with_a_clean_state(run):
    run("global left\nleft = 1\nimport math\nmath.pi = 3")

    assert "NameError: name 'left' is not defined" in run("return left").error
    assert run("import math\nreturn math.pi").value > 3


ERRORS = {
    "an unknown name": ("\n\nreturn x", "NameError: name 'x' is not defined (line 3)"),
    "an error in a function": (
        "def f():\n    return 1 / 0\n\nreturn f()",
        "ZeroDivisionError: division by zero (line 2)",
    ),
    "an error in a text that is evaluated": ("\nreturn eval('1 + x')", "NameError: name 'x' is not defined (line 2)"),
    "a key that is missing": ("return a['b']", "KeyError: b (line 1)"),
    "an error of its own": ("raise ValueError('no funds')", "ValueError: no funds (line 1)"),
    "a pretended end of time": (
        "raise TimeoutError('feed time limit exceeded')",
        "TimeoutError: feed time limit exceeded (line 1)",
    ),
    "an error that is raised again where there is none": ("raise", "RuntimeError: No active exception to reraise"),
    "an assertion": ("assert a == 2", "AssertionError"),
    "an exit": ("raise SystemExit", "SystemExit (line 1)"),
    "bad syntax": ("x = 1\nreturn )", "(line 2)"),
    "a bracket that stays open": (
        "return (",
        "the script ends within a statement, a bracket or a string (line 1)",
    ),
    "a text that stays open": ("x = 1\nreturn '''\n", "(line 2)"),
    "a line that goes on into nothing": ("return 1 + \\", "SyntaxError"),
    "a first line that is indented": ("  return a", "SyntaxError: Unexpected indentation (line 1)"),
    "the inputs of JavaScript": (
        "return $.a",
        "unexpected token $ (line 1): in Python, inputs are variables: write name instead of $.name.",
    ),
    "a statement that is not supported": (
        "x = 1\nyield x",
        "SyntaxError: yield expressions cannot be used in scripts (line 2): "
        "rewrite the script, or use a task with a worker.",
    ),
    "a class with a base": ("class Poor(Exception): pass", "cannot be used in scripts (line 1)"),
    "code nested too deeply": (
        "return " + "[" * 5000 + "]" * 5000,
        "SyntaxError: Source is too deeply nested (line 1)",
    ),
    "a null character": ("return 1\0", "SyntaxError"),
    "a module that there is not": ("import socket", "No module named 'socket' (line 1): scripts can import asyncio, "),
    "deep recursion": ("def f(): return f()\nreturn f()", "RecursionError: maximum recursion depth exceeded (line 1)"),
    "a set": ("return {1}", "Object of type set is not JSON serializable: return strings, numbers, "),
    "a function": ("return lambda: 1", "Object of type function is not JSON serializable"),
    "a built-in function": ("return len", "is not JSON serializable"),
    "a class": ("class A: pass\nreturn A", "is not JSON serializable"),
    "an object": ("class A: pass\nreturn [A()]", "Object of type A is not JSON serializable"),
    "bytes": ("return b'a'", "Object of type bytes is not JSON serializable"),
    "a date": ("import datetime\nreturn datetime.date(2020, 1, 1)", "Object of type date is not JSON serializable"),
    "a complex number": ("return 1j", "Object of type complex is not JSON serializable"),
    "a range": ("return range(3)", "Object of type range is not JSON serializable"),
    "a key that is no text": ("return {(1, 2): 3}", "keys must be str, int, float, bool or None, not tuple"),
    "a circle": ("x = []\nx.append(x)\nreturn x", "Circular reference detected"),
    "201 levels": ("x = 1\nfor i in range(201): x = [x]\nreturn x", "The result is nested deeper than 200 levels."),
    "a hundred thousand levels": (
        "x = 1\nfor i in range(100000): x = [x]\nreturn x",
        "The result is nested deeper than 200 levels.",
    ),
    "an integer of 5000 digits": ("return 10 ** 5000", "Exceeds the limit (4300 digits)"),
    "a result of more than 10 MB": ("return 'x' * (11 * 2 ** 20)", "The script's result is larger than 10 MB."),
    "a forged writer": ("import json\njson.dumps = None", "AttributeError"),
    "a sleep that is too long": (
        "import time\n\ntime.sleep(60)",
        "TimeoutError: sleep limit exceeded: 60s > 2s (line 3)",
    ),
}


@pytest.mark.parametrize(("source", "sentence"), ERRORS.values(), ids=ERRORS)
def test_a_script_that_fails_is_explained_in_a_sentence_that_names_the_line(run, source, sentence):
    answer = run(source, {"a": {}})

    assert sentence in answer.error
    assert "Traceback" not in answer.error
    assert "__script__" not in answer.error
    assert len(answer.error) <= 2200
    assert (answer.value, answer.timed_out) == (None, False)


def test_a_very_long_message_is_cut(run):
    assert len(run("raise ValueError('x' * 10 ** 6)").error) < 2100


def test_a_result_200_levels_deep_is_returned(run):
    value = run("x = 1\nfor i in range(200): x = [x] if i % 2 else {'x': x}\nreturn x").value

    levels = 0
    while value != 1:
        value, levels = value[0] if isinstance(value, list) else value["x"], levels + 1
    assert levels == 200


ESCAPES = {
    "a file": ("return open('/etc/passwd').read()", "PermissionError: Permission denied: '/etc/passwd' (line 1)"),
    "a file to write": ("open('/tmp/x', 'w').write('x')", "PermissionError"),
    "a path": ("import pathlib\nreturn pathlib.Path('/etc/passwd').read_text()", "PermissionError"),
    "a folder": ("import os\nreturn os.listdir('/')", "PermissionError"),
    "the environment": ("import os\nreturn os.environ", "'os.environ' is not supported"),
    "one variable of it": ("import os\nreturn os.getenv('PATH')", "not supported"),
    "a command": ("import os\nreturn os.system('id')", "module 'os' has no attribute 'system'"),
    "a process": ("import subprocess", "No module named 'subprocess'"),
    "memory": ("import ctypes", "No module named 'ctypes'"),
    "our own modules": ("import results", "No module named 'results'"),
    "an import by name": ("return __import__('os')", "name '__import__' is not defined"),
    "an import in evaluated text": ("return eval(\"__import__('os')\")", "name '__import__' is not defined"),
    "all classes": ("return ().__class__.__bases__[0].__subclasses__()", "no attribute '__class__'"),
    "globals through a function": ("def f(): pass\nreturn f.__globals__", "no attribute '__globals__'"),
    "globals through a format": ("return '{0.__class__.__init__}'.format(print)", "no attribute '__class__'"),
    "the frames": ("import sys\nreturn sys._getframe()", "no attribute '_getframe'"),
    "a console": ("return input()", "name 'input' is not defined"),
    "a debugger": ("breakpoint()", "name 'breakpoint' is not defined"),
}


@pytest.mark.parametrize(("source", "sentence"), ESCAPES.values(), ids=ESCAPES)
def test_a_script_cannot_access_anything_outside_its_interpreter(run, source, sentence):
    assert sentence in run(source).error
    assert run("return 1").value == 1


HUNGRY = {
    "a list without end": "x = []\nwhile True:\n    x.append(1)",
    "one large text": "x = 1\nreturn 'x' * 10 ** 9",
    "one large list": "x = 1\nreturn [0] * 10 ** 9",
    "one large integer": "x = 1\nreturn 2 ** 10 ** 9",
    "a text formatted to a width": "x = 1\nreturn '%1000000000d' % 1",
    "a text formatted by a format": "x = 1\nreturn '{:>1000000000}'.format('a')",
    "a text formatted in place": "x = 1\nreturn f'{1:>{10 ** 9}}'",
    "a text put together": "x = 1\nreturn 'a'.join(['b' * 1000] * 10 ** 6)",
    "a text replaced": "x = 1\nreturn ('a' * 10 ** 6).replace('a', 'b' * 1000)",
}


@pytest.mark.parametrize("source", HUNGRY.values(), ids=HUNGRY)
def test_a_script_that_exhausts_the_memory_is_stopped(run, source):
    assert run(source).error.startswith("The script used more than 64 MB of memory and was stopped")
    assert run("return 1").value == 1


def test_the_line_that_took_the_memory_is_named(run):
    assert run(HUNGRY["one large list"]).error.endswith("was stopped (line 2).")


ENDLESS = {
    "a loop": "while True: pass",
    "a loop that catches everything": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "a sum": "return sum(range(10 ** 12))",
    "recursion that begins again": "def f():\n    try: f()\n    finally: f()\nf()",
    "a huge factorial": "import math\nreturn math.factorial(10 ** 6) % 7",
    "a huge power": "return (10 ** (10 ** 7)) % 7",
    "printing": "while True: print('x' * 1000)",
}


@pytest.mark.parametrize("source", ENDLESS.values(), ids=ENDLESS)
def test_an_endless_script_is_stopped_at_its_limit(pool, run, source):
    answer = pool.evaluate("python", source, {}, 0.2)

    assert (answer.error, answer.timed_out) == ("The script ran longer than 0.2 s and was stopped.", True)
    assert run("return 1").value == 1


def test_a_catastrophic_regular_expression_is_stopped(run):
    source = "import re\nreturn re.match(r'(a|aa)+\\1$(?=b)', 'a' * 60 + 'c')"

    assert run(source).error.endswith("Max limit for backtracking count exceeded (line 2)")


def test_a_script_that_sleeps_forever_is_stopped(run):
    assert (
        run("import time\nwhile True: time.sleep(0)").error == "RuntimeError: suspension limit 1000 exceeded (line 2)"
    )


def test_printed_lines_are_returned_with_the_result(run):
    assert run("print('a', {'b': [1, None]})\nprint('c')\nreturn 7").logs == ("a {'b': [1, None]}", "c")
    assert run("print('so far')\nx").logs == ("so far",)


def test_a_script_that_prints_without_measure_is_cut_off(run):
    answer = run("for i in range(1000): print('x' * 5000)\nreturn 1")

    assert (answer.value, len(answer.logs) <= 100, max(map(len, answer.logs))) == (1, True, 1000)


def test_a_large_input_is_read(run):
    assert run("return len(a)", {"a": ["x" * 1000] * 10_000}).value == 10_000


@pytest.mark.parametrize(
    ("levels", "error"), [(199, None), (300, "The script's inputs are nested deeper than 200 levels.")]
)
def test_an_input_may_be_nested_as_deep_as_a_result(run, levels, error):
    value = 1
    for _ in range(levels):
        value = [value]

    assert run("return len(a)", {"a": value}).error == error


def test_an_integer_of_more_than_4300_digits_is_refused(run):
    assert run("return a", {"a": 10**4299}).value == 10**4299
    assert run("return a", {"a": 10**4300}).error.startswith("The script's inputs cannot be converted to JSON")


def test_a_script_that_is_empty_has_no_value(run):
    assert run("").value is None


def worker_of(pool):
    """The process id of the interpreter that belongs to the pool's only helper."""
    (pid,) = pool.idle_pids()
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return int(children.read())


def test_an_interpreter_that_ends_fails_one_script_and_is_replaced(run, pool):
    run("return 1")
    helper, worker = pool.idle_pids(), worker_of(pool)

    os.kill(worker, signal.SIGKILL)
    # The loss is noticed either before the script is sent, and nothing is lost, or with it.
    first = run("return 1")

    assert first.value == 1 or "crashed its interpreter" in first.error
    assert run("return 2").value == 2
    assert pool.idle_pids() == helper
    assert worker_of(pool) != worker


def test_an_interpreter_has_neither_environment_nor_descriptors_to_open(run, pool):
    run("return 1")
    worker = worker_of(pool)

    with open(f"/proc/{worker}/environ", "rb") as environ:
        assert environ.read().strip(b"\0") == b""
    with open(f"/proc/{worker}/limits") as limits:
        assert any(line.split()[:4] == ["Max", "open", "files", "0"] for line in limits)
    assert sorted(os.listdir(f"/proc/{worker}/fd")) == ["0", "1", "2"]


def test_an_interpreter_that_is_new_is_shut_in_as_well(run, pool):
    run("return 'a'.join(['b' * 1000] * 10 ** 6)")
    run("return 1")

    with open(f"/proc/{worker_of(pool)}/limits") as limits:
        assert any(line.split()[:4] == ["Max", "open", "files", "0"] for line in limits)


def is_running(pid):
    """Whether the process runs; one that has ended may still wait to be reaped by the system."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("end", ["closed", "killed"])
def test_an_interpreter_ends_with_its_helper(end):
    pool = Pool(size=1)
    pool.evaluate("python", "return 1", {})
    worker = worker_of(pool)

    if end == "killed":
        os.kill(*pool.idle_pids(), signal.SIGKILL)
    else:
        pool.close()

    ends = time.monotonic() + 5
    while is_running(worker) and time.monotonic() < ends:
        os.sched_yield()
    assert not is_running(worker)
    pool.close()


def test_other_languages_start_no_interpreter_and_python_starts_no_other_engine():
    pool = Pool(size=1)

    pool.evaluate("javascript", "1", {})
    (first,) = pool.idle_pids()
    pool.evaluate("python", "return 1", {})
    pool.evaluate("jq", ".", {})

    assert len(pool.idle_pids()) == 2
    assert first in pool.idle_pids()
    pool.close()
