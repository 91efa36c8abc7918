"""The engine for Python, on Monty: an interpreter without files, network and environment, and with few modules.

Monty runs its interpreter in a worker process, which this process starts and monitors. Inputs and results are
passed as JSON text. The interpreter parses and writes it faster than values are converted one by one. It also refuses
values that are not JSON, which a conversion would replace by a description.
"""

import ast
import json
import keyword
import re
import resource
import shutil
import sysconfig
from threading import Thread
from typing import TypeGuard

import pydantic_monty
import system_call_filter
from results import (
    LOG_LINE_LENGTH,
    LOG_LINES,
    MAX_RESULT_DEPTH,
    NOT_EVALUATED,
    OUT_OF_MEMORY,
    SCRIPT_MEMORY,
    TOO_DEEP,
    answer_document,
    is_too_deep,
    parse_all,
)

MAX_DESCRIPTORS = 64
PROGRAM = shutil.which("monty", path=sysconfig.get_path("scripts"))
GRACE_SECONDS = 0.3
SECONDS_TO_START = 5
MAX_MESSAGE_LENGTH = 2000
LINES_BEFORE = 2
NONE = (0, 0)
# Without a limit per sleep, the error message contains the time that the script requested.
OS_POLICY: pydantic_monty.OSPolicy = {"sleep": "system", "sleep_system_max": float("inf")}
IMPORTABLE = (
    "asyncio, base64, binascii, bisect, collections, copy, csv, dataclasses, datetime, decimal, functools, hashlib, "
    "itertools, json, math, random, re, time, tomllib, typing and unicodedata"
)
LONE_SURROGATE = re.compile(r"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)|\\.", re.DOTALL)
UNSUPPORTED = re.compile(r"The monty syntax parser does not yet support (.*)", re.DOTALL)

worker: int | None = None
pool = pydantic_monty.Monty(
    binary_path=PROGRAM,
    min_processes=1,
    max_processes=1,
    checkout_timeout=SECONDS_TO_START,
    feed_duration_limit_grace=GRACE_SECONDS,
)


class OutputLines:
    """The printed output of a script, up to a limit."""

    def __init__(self):
        self._text = ""

    def __call__(self, _stream, text):
        """Add printed text."""
        self._text += text[: LOG_LINES * (LOG_LINE_LENGTH + 1) - len(self._text)]

    def text_to_keep(self):
        """Return the first lines, truncated to the maximum length."""
        return [line[:LOG_LINE_LENGTH] for line in self._text.splitlines()[:LOG_LINES]]


def start():
    """Start the worker process, and restrict it and this process. Returns why there is no filter, or an empty text.

    The worker inherits the limits, the empty environment, and the filter of the thread that starts it. That filter does
    not allow to change the limits of another process, so the main thread does this before it has a filter itself. Its
    own filter does not allow to start another worker: a helper whose worker has ended is replaced.
    """
    global worker
    refusals = []
    thread = Thread(target=lambda: refusals.append(start_worker()))
    thread.start()
    thread.join()
    with pool.checkout() as session:
        worker = session.worker_pid
    assert worker
    resource.prlimit(worker, resource.RLIMIT_NOFILE, NONE)
    calls = system_call_filter.computing_calls(worker) | system_call_filter.thread_calls()
    return refusals[0] or system_call_filter.restrict_thread(calls)


def start_worker():
    """Restrict this thread, and start the worker process in it. Returns why there is no filter, or an empty text."""
    refusal = system_call_filter.restrict_thread(
        system_call_filter.computing_calls() | system_call_filter.loading_calls()
    )
    pool.__enter__()
    return refusal


def run_python(order, inputs):
    """Execute a script in a new interpreter session, and return its result."""
    limit = order["limit"]
    limits: pydantic_monty.ResourceLimits = {
        "max_feed_duration_secs": limit,
        "max_total_sleep_secs": limit,
        "max_memory": SCRIPT_MEMORY,
    }
    source = order["source"].replace("\r\n", "\n").replace("\r", "\n")
    names = [name for name in order["names"] if is_variable_name(name)]
    printed = OutputLines()
    code, variables = wrap_in_function(source, names), {"__inputs__": replace_lone_surrogates(inputs)}
    last_line = code.count("\n") + 1
    try:
        with pool.checkout(limits=limits, os_policy=OS_POLICY) as session:
            if session.worker_pid != worker:
                # Without a filter, Monty has started another worker, which has no limit of descriptors.
                return NOT_EVALUATED
            text = session.feed_run(code, inputs=variables, print_callback=printed)
    except pydantic_monty.MontyCrashedError as error:
        return crash_result(error, printed.text_to_keep())
    except pydantic_monty.MontyError as error:
        return failure_result(error, source, last_line, printed.text_to_keep())
    except RuntimeError:
        # The worker has ended after an earlier script, and the filter does not allow to start another one.
        return NOT_EVALUATED
    return success_result(text, printed.text_to_keep())


def parse_python(order, inputs):
    """Return the syntax error of each script, or None. Each is the body of a function that is not called."""

    def error_of(source):
        source = source.replace("\r\n", "\n").replace("\r", "\n")
        code = "\n".join(["def __script__():", *function_body(source), "    pass", "0"])
        try:
            with pool.checkout(
                limits={"max_feed_duration_secs": order["limit"], "max_memory": SCRIPT_MEMORY}
            ) as session:
                session.feed_run(code)
        except pydantic_monty.MontySyntaxError as error:
            return python_syntax_error(error, source)
        except (pydantic_monty.MontyError, RuntimeError):
            return None

    return parse_all(order, inputs, error_of)


def python_syntax_error(error, source):
    """Return message, line and column of a syntax error."""
    raised, frames, lines = error.exception(), error.traceback(), source.count("\n") + 1
    frame = frames[-1] if frames else None
    if frame and frame.line > lines + 1:
        return "SyntaxError: the script ends within a statement, a bracket or a string", lines, 0
    text = error.display("type-msg")
    if unsupported := UNSUPPORTED.fullmatch(str(raised)):
        text = f"SyntaxError: {unsupported[1]} cannot be used in scripts"
    line = frame.line - 1 if frame else 0
    indent = 0 if line in string_continuation_lines(source) else 4
    return text[:MAX_MESSAGE_LENGTH] + advice_for(raised), max(line, 0), max(frame.column - indent, 1) if frame else 0


def is_variable_name(name):
    """Return True if an input with this name can be a variable. Scripts cannot read other inputs."""
    return name.isidentifier() and not keyword.iskeyword(name) and not name.startswith("__")


def wrap_in_function(source, names):
    """Return code that runs the script as the body of a function, with its inputs as global variables."""
    return "\n".join(
        [
            "def __script__():",
            f"    global {', '.join(names)}" if names else "    pass",
            *function_body(source),
            "",
            "from json import dumps as __dumps__, loads as __loads__",
            "__inputs__ = __loads__(__inputs__)",
            *(f"{name} = __inputs__[{name!r}]" for name in names),
            "__value__ = __script__()",
            "__dumps__(__value__)",
        ]
    )


def function_body(source):
    """Return the lines of a script, indented as the body of a function."""
    unindented = string_continuation_lines(source)
    return [
        line if number in unindented or not line.strip() else f"    {line}"
        for number, line in enumerate(source.split("\n"), start=1)
    ]


def string_continuation_lines(source):
    """Return the numbers of the lines that begin inside a string literal. Indenting them would change the literal."""
    if '"""' not in source and "'''" not in source and "\\\n" not in source:
        return frozenset()
    try:
        nodes = ast.walk(ast.parse(source))
        texts = [node for node in nodes if isinstance(node, ast.JoinedStr) or is_string_literal(node)]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return frozenset()
    return frozenset(line for text in texts for line in range(text.lineno + 1, (text.end_lineno or text.lineno) + 1))


def is_string_literal(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def replace_lone_surrogates(text):
    """Return the JSON text with lone surrogates replaced, because the interpreter refuses them."""
    if "\\ud" not in text:
        return text
    return LONE_SURROGATE.sub(lambda match: "\\ufffd" if match[1] else match[0], text)


def success_result(text, logs):
    """Return the result with the value of the script. NaN and Infinity become text, as in Conductor."""
    try:
        value = json.loads(text, parse_constant=str)
        if is_too_deep(text):
            return answer_document(error=TOO_DEEP, logs=logs)
        return answer_document(value, logs=logs)
    except RecursionError:
        return answer_document(error=TOO_DEEP, logs=logs)
    except (TypeError, ValueError):
        return answer_document(error="The script's result is not JSON.", logs=logs)


def crash_result(error, logs):
    """Return the result after the worker process has ended."""
    if error.timed_out:
        return answer_document(timed_out=True, logs=logs)
    return answer_document(error="The script crashed its interpreter and was stopped.", logs=logs)


def failure_result(error, source, last_line, logs):
    """Return the result for an error of the script, its syntax or its limits.

    In the code of `wrap_in_function`, the last line writes the result, the line before it calls the script, and earlier
    lines read the inputs.
    """
    raised, frames = error.exception(), error.traceback()
    if isinstance(raised, TimeoutError) and not frames:
        return answer_document(timed_out=True, logs=logs)
    lines = source.count("\n") + 1
    line = line_of(frames, lines)
    place = f" (line {line})" if line else ""
    if isinstance(raised, MemoryError) and "memory limit" in str(raised):
        return answer_document(error=f"{OUT_OF_MEMORY.rstrip('.')}{place}.", logs=logs)
    if frames and not line and frames[0].line != last_line - 1:
        error = (
            unserializable_result_message(raised) if frames[0].line == last_line else unreadable_input_message(raised)
        )
        return answer_document(error=error, logs=logs)
    text = error.display("type-msg")
    if isinstance(error, pydantic_monty.MontySyntaxError) and frames and frames[-1].line > lines + LINES_BEFORE:
        text = "SyntaxError: the script ends within a statement, a bracket or a string"
    if unsupported := UNSUPPORTED.fullmatch(str(raised)):
        text = f"SyntaxError: {unsupported[1]} cannot be used in scripts"
    return answer_document(error=text[:MAX_MESSAGE_LENGTH] + place + advice_for(raised), logs=logs)


def line_of(frames, lines):
    """Return the line of the script in which the error occurred, or 0."""
    if not frames:
        return 0
    # Syntax errors have no function. Unclosed constructs are detected after the end of the script.
    if frames[-1].function_name is None:
        return min(max(frames[-1].line - LINES_BEFORE, 1), lines)
    script = frames[0].filename
    within = [frame.line - LINES_BEFORE for frame in frames if frame.filename == script]
    return next((line for line in reversed(within) if 1 <= line <= lines), 0)


def unserializable_result_message(raised):
    """Return the message for a result that cannot be serialized."""
    if isinstance(raised, RecursionError):
        return TOO_DEEP
    return f"{str(raised)[:MAX_MESSAGE_LENGTH]}: return strings, numbers, booleans, None, and lists and dicts of them."


def unreadable_input_message(raised):
    """Return the message for inputs that cannot be read."""
    if "recursion limit" in str(raised):
        return f"The script's inputs are nested deeper than {MAX_RESULT_DEPTH} levels."
    return f"The script's inputs cannot be read: {str(raised)[:MAX_MESSAGE_LENGTH]}."


def advice_for(raised):
    """Return advice for an error whose text has none."""
    if isinstance(raised, ModuleNotFoundError):
        return f": scripts can import {IMPORTABLE}."
    if isinstance(raised, PermissionError):
        return ": scripts cannot access files."
    if isinstance(raised, SyntaxError) and "token $" in str(raised):
        return ": in Python, inputs are variables: write name instead of $.name."
    if UNSUPPORTED.fullmatch(str(raised)):
        return ": rewrite the script, or use a task with a worker."
    return ""


LANGUAGES = {"python": run_python, "python-syntax": parse_python}
