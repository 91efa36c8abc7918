"""Results of Python scripts, and their isolation from each other and from the server."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.scripts.pool import Pool

LIMIT = 2


@pytest.fixture(scope="module")
def run(pool):
    return lambda source, inputs=None: pool.evaluate("python", source, {} if inputs is None else inputs, LIMIT)


VALUES = {
    "a sum of an input": ("return a + 1", 2),
    "no return statement": ("a + 1", None),
    "a comment only": ("# nothing", None),
    "None": ("return None", None),
    "a boolean": ("return a == 1", True),
    "an integer": ("return 5", 5),
    "a whole float": ("return 5.0", 5.0),
    "minus zero": ("return -0.0", -0.0),
    "an integer beyond 64 bits": ("return 2 ** 70", 2**70),
    "an integer beyond all floats": ("return 10 ** 400", 10**400),
    "a float with an exponent": ("return 1e300", 1e300),
    "NaN": ("return float('nan')", "NaN"),
    "infinity": ("return [float('inf'), float('-inf')]", ["Infinity", "-Infinity"]),
    "text": ("return 'é😀\\0\\u2028'", "é😀\0\u2028"),
    "a lone surrogate": ("return 'a\\ud800'", "a\ufffd"),
    "a dict and a list": ("return {'a': [a, {}]}", {"a": [1, {}]}),
    "a tuple": ("return (1, (2,))", [1, [2]]),
    "keys that JSON writes as text": ("return {1: 'a', None: 'b'}", {"1": "a", "null": "b"}),
    "members of the inputs": ("return [m['k'], m.get('x'), l[0], len(l)]", [3, None, 1, 2]),
    "a loop and a branch": ("t = 0\nfor x in l:\n    if x > 1:\n        t += x\nreturn t", 2),
    "Windows line endings": ("b = a\r\nreturn b", 1),
    "a function of the script": ("def double(a):\n    return 2 * a\nreturn double(4)", 8),
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
    result = run(source, {"a": 1, "l": [1, 2], "m": {"k": 3}})

    assert (result.error, result.value) == (None, value)
    assert type(result.value) is type(value)


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
    result = run("return value", {"value": value})

    assert result.error is None
    assert json.dumps(result.value, sort_keys=True) == json.dumps(value, sort_keys=True)


def test_an_input_is_a_variable_even_if_its_name_is_that_of_a_built_in_or_not_in_ascii(run):
    assert run("return [größe, len, print, json]", {"größe": 1, "len": 2, "print": 3, "json": 4}).value == [1, 2, 3, 4]


def test_an_input_whose_name_is_not_an_identifier_is_ignored(run):
    inputs = {"a-b": 1, "class": 2, "": 3, "1a": 4, "__inputs__": 5, "__debug__": 6, "a": 7, "\ud800": 8, "x = 1\ny": 9}

    assert run("return a", inputs).value == 7


def test_a_lone_surrogate_in_an_input_becomes_the_replacement_character(run):
    assert run("return a", {"a": "\ud800\\ud800😀"}).value == "\ufffd\\ud800😀"


def test_inputs_that_are_not_an_object_have_no_names(run):
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
    "an error of the script": ("raise ValueError('no funds')", "ValueError: no funds (line 1)"),
    "a forged timeout": (
        "raise TimeoutError('feed time limit exceeded')",
        "TimeoutError: feed time limit exceeded (line 1)",
    ),
    "a bare raise": ("raise", "RuntimeError: No active exception to reraise"),
    "an assertion": ("assert a == 2", "AssertionError"),
    "an exit": ("raise SystemExit", "SystemExit (line 1)"),
    "bad syntax": ("x = 1\nreturn )", "(line 2)"),
    "an unclosed bracket": (
        "return (",
        "the script ends within a statement, a bracket or a string (line 1)",
    ),
    "an unclosed string": ("x = 1\nreturn '''\n", "(line 2)"),
    "a continuation without a next line": ("return 1 + \\", "SyntaxError"),
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
    "an unknown module": ("import socket", "No module named 'socket' (line 1): scripts can import asyncio, "),
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
    "a key that is not a string": ("return {(1, 2): 3}", "keys must be str, int, float, bool or None, not tuple"),
    "a circular reference": ("x = []\nx.append(x)\nreturn x", "Circular reference detected"),
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
    result = run(source, {"a": {}})

    assert sentence in result.error
    assert "Traceback" not in result.error
    assert "__script__" not in result.error
    assert len(result.error) <= 2200
    assert (result.value, result.timed_out) == (None, False)


def test_a_very_long_message_is_cut(run):
    assert len(run("raise ValueError('x' * 10 ** 6)").error) < 2100


def test_a_result_200_levels_deep_is_returned(run):
    value = run("x = 1\nfor i in range(200): x = [x] if i % 2 else {'x': x}\nreturn x").value

    levels = 0
    while value != 1:
        value, levels = value[0] if isinstance(value, list) else value["x"], levels + 1
    assert levels == 200


FORBIDDEN = {
    "a file": ("return open('/etc/passwd').read()", "PermissionError: Permission denied: '/etc/passwd' (line 1)"),
    "a file to write": ("open('/tmp/x', 'w').write('x')", "PermissionError"),
    "a path": ("import pathlib\nreturn pathlib.Path('/etc/passwd').read_text()", "PermissionError"),
    "a folder": ("import os\nreturn os.listdir('/')", "PermissionError"),
    "the environment": ("import os\nreturn os.environ", "'os.environ' is not supported"),
    "an environment variable": ("import os\nreturn os.getenv('PATH')", "not supported"),
    "a command": ("import os\nreturn os.system('id')", "module 'os' has no attribute 'system'"),
    "a process": ("import subprocess", "No module named 'subprocess'"),
    "memory": ("import ctypes", "No module named 'ctypes'"),
    "modules of the server": ("import results", "No module named 'results'"),
    "an import by name": ("return __import__('os')", "name '__import__' is not defined"),
    "an import in evaluated text": ("return eval(\"__import__('os')\")", "name '__import__' is not defined"),
    "all classes": ("return ().__class__.__bases__[0].__subclasses__()", "no attribute '__class__'"),
    "globals through a function": ("def f(): pass\nreturn f.__globals__", "no attribute '__globals__'"),
    "globals through a format": ("return '{0.__class__.__init__}'.format(print)", "no attribute '__class__'"),
    "the frames": ("import sys\nreturn sys._getframe()", "no attribute '_getframe'"),
    "a console": ("return input()", "name 'input' is not defined"),
    "a debugger": ("breakpoint()", "name 'breakpoint' is not defined"),
}


@pytest.mark.parametrize(("source", "sentence"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_a_script_cannot_access_anything_outside_its_interpreter(run, source, sentence):
    assert sentence in run(source).error
    assert run("return 1").value == 1


MEMORY_HOGS = {
    "an endless list": "x = []\nwhile True:\n    x.append(1)",
    "one large text": "x = 1\nreturn 'x' * 10 ** 9",
    "one large list": "x = 1\nreturn [0] * 10 ** 9",
    "one large integer": "x = 1\nreturn 2 ** 10 ** 9",
    "a text formatted to a width": "x = 1\nreturn '%1000000000d' % 1",
    "a text formatted by a format": "x = 1\nreturn '{:>1000000000}'.format('a')",
    "a text formatted in place": "x = 1\nreturn f'{1:>{10 ** 9}}'",
    "a joined text": "x = 1\nreturn 'a'.join(['b' * 1000] * 10 ** 6)",
    "a text with replacements": "x = 1\nreturn ('a' * 10 ** 6).replace('a', 'b' * 1000)",
}


@pytest.mark.parametrize("source", MEMORY_HOGS.values(), ids=MEMORY_HOGS)
def test_a_script_that_exhausts_the_memory_is_stopped(run, source):
    assert run(source).error.startswith("The script used more than 64 MB of memory and was stopped")
    assert run("return 1").value == 1


def test_the_line_that_exhausted_the_memory_is_named(run):
    assert run(MEMORY_HOGS["one large list"]).error.endswith("was stopped (line 2).")


ENDLESS = {
    "a loop": "while True: pass",
    "a loop that catches everything": "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
    "a sum": "return sum(range(10 ** 12))",
    "repeated recursion": "def f():\n    try: f()\n    finally: f()\nf()",
    "a huge factorial": "import math\nreturn math.factorial(10 ** 6) % 7",
    "a huge power": "return (10 ** (10 ** 7)) % 7",
    "printing": "while True: print('x' * 1000)",
}


@pytest.mark.parametrize("source", ENDLESS.values(), ids=ENDLESS)
def test_an_endless_script_is_stopped_at_its_limit(pool, run, source):
    result = pool.evaluate("python", source, {}, 0.2)

    assert (result.error, result.timed_out) == ("The script ran longer than 0.2 s and was stopped.", True)
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


def test_a_script_that_prints_too_much_is_cut_off(run):
    result = run("for i in range(1000): print('x' * 5000)\nreturn 1")

    assert (result.value, len(result.logs) <= 100, max(map(len, result.logs))) == (1, True, 1000)


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


def test_an_empty_script_has_no_value(run):
    assert run("").value is None


def interpreter_pid(pool):
    """Return the process id of the interpreter of the pool's only helper."""
    (pid,) = pool.idle_pids()
    # A thread that has ended has started it, so that it belongs to any of the other threads.
    children = ((task / "children").read_text() for task in Path(f"/proc/{pid}/task").iterdir())
    return int("".join(children))


def test_an_interpreter_that_ends_fails_one_script_and_its_helper_is_replaced(run, pool):
    run("return 1")
    helper, interpreter = pool.idle_pids(), interpreter_pid(pool)

    os.kill(interpreter, signal.SIGKILL)
    # The helper notices the loss before it sends the script, which another helper then evaluates, or afterwards.
    first = run("return 1")

    assert first.value == 1 or "crashed its interpreter" in first.error
    assert run("return 2").value == 2
    assert pool.idle_pids() != helper
    assert interpreter_pid(pool) != interpreter


def test_an_interpreter_has_neither_environment_nor_descriptors_to_open(run, pool):
    run("return 1")
    interpreter = interpreter_pid(pool)

    with open(f"/proc/{interpreter}/environ", "rb") as environ:
        assert environ.read().strip(b"\0") == b""
    with open(f"/proc/{interpreter}/limits") as limits:
        assert any(line.split()[:4] == ["Max", "open", "files", "0"] for line in limits)
    assert sorted(os.listdir(f"/proc/{interpreter}/fd")) == ["0", "1", "2"]


def test_a_replaced_interpreter_is_isolated_as_well(run, pool):
    run("return 'a'.join(['b' * 1000] * 10 ** 6)")
    run("return 1")

    with open(f"/proc/{interpreter_pid(pool)}/limits") as limits:
        assert any(line.split()[:4] == ["Max", "open", "files", "0"] for line in limits)


def is_running(pid):
    """Return whether the process runs; a process that has ended may still have to be reaped."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("end", ["closed", "killed"])
def test_an_interpreter_ends_with_its_helper(end):
    pool = Pool(size=1)
    pool.evaluate("python", "return 1", {})
    interpreter = interpreter_pid(pool)

    if end == "killed":
        os.kill(*pool.idle_pids(), signal.SIGKILL)
    else:
        pool.close()

    deadline = time.monotonic() + 5
    while is_running(interpreter) and time.monotonic() < deadline:
        os.sched_yield()
    assert not is_running(interpreter)
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
