"""The engine for JavaScript, on QuickJS, and for jq."""

import json
import re
from functools import lru_cache
from pathlib import Path

import jq
import quickjs
import system_call_filter
from results import (
    LOG_LINE_LENGTH,
    LOG_LINES,
    MAX_RESULT_DEPTH,
    MAX_RESULT_SIZE,
    OUT_OF_MEMORY,
    SCRIPT_MEMORY,
    TOO_DEEP,
    TOO_LARGE,
    answer_document,
    is_too_deep,
    parse_all,
)

MAX_DESCRIPTORS = 0
PROGRAM = None
SCRIPT_STACK = 512 << 10
EXACT_NUMBER = re.compile(r"[0-9]{16}|[0-9]\.0\b")
"""What is at least in a number that a double changes: an integer beyond 2⁵³, or a float that is whole."""
STOP = "throw 0;"
SANDBOX = Path(__file__).with_name("sandbox.js").read_text(encoding="utf-8")


def start():
    """Restrict this process, in which both engines run. Returns why there is no filter, or an empty text."""
    return system_call_filter.restrict_process(system_call_filter.computing_calls())


def run_javascript(order, inputs):
    """Evaluate a script in a new context, in which `$` is the inputs, and return its completion value."""
    context = quickjs.Context()
    context.set_memory_limit(SCRIPT_MEMORY)
    context.set_max_stack_size(SCRIPT_STACK)
    run = context.eval(SANDBOX)(MAX_RESULT_DEPTH, LOG_LINES, LOG_LINE_LENGTH, OUT_OF_MEMORY)
    context.set_time_limit(order["limit"])
    try:
        return run(json.dumps(order["source"]), inputs)
    except quickjs.JSException as error:
        return exhausted_result(error, run)


def exhausted_result(error, run):
    """Return the result for an error that the sandbox cannot catch: time or memory is exhausted."""
    try:
        logs = json.loads(run())["logs"]
    except (quickjs.JSException, MemoryError):
        logs = ()
    message = str(error).partition("\n")[0]
    if message == "InternalError: interrupted":
        return answer_document(timed_out=True, logs=logs)
    if message in ("InternalError: out of memory", "null"):
        return answer_document(error=OUT_OF_MEMORY, logs=logs)
    return answer_document(error=f"The script's result cannot be serialized: {message[:1000]}", logs=logs)


@lru_cache(maxsize=1000)
def compile_jq(source):
    """Return a compiled jq program. Compilation takes a hundred times as long as execution, so it is cached."""
    return jq.compile(source)


def json_texts(source, inputs):
    """Yield the values of a jq program as JSON.

    The binding of jq converts numbers to doubles. `tojson` keeps the digits of those that the program only passes on,
    but takes longer for texts.
    """
    program = compile_jq(source)
    if EXACT_NUMBER.search(inputs) or EXACT_NUMBER.search(source):
        yield from compile_jq(f"({source}\n) | tojson").input_text(inputs)
    else:
        yield from map(json.dumps, program.input_text(inputs))


def run_jq(order, inputs):
    """Return all values that a jq program produces from its input."""
    values, size = [], 0
    try:
        for text in json_texts(order["source"], inputs):
            if is_too_deep(text):
                return answer_document(error=TOO_DEEP)
            values.append(text)
            size += len(text)
            if size > MAX_RESULT_SIZE:
                return answer_document(error=TOO_LARGE)
    except RecursionError:
        return answer_document(error=TOO_DEEP)
    except ValueError as error:
        return answer_document(error=error_line(error))
    return '{"value": [' + ", ".join(values) + "]}"


def error_line(error):
    """Return the message of a jq error, without the excerpt of the program in its other lines."""
    return re.sub(r"^jq: error: ", "", str(error).strip().partition("\n")[0])[:2000]


def parse_javascript(order, inputs):
    """Return the syntax error of each script, or None. The scripts are parsed as by `run_javascript`, not executed."""
    context = quickjs.Context()
    context.set_memory_limit(SCRIPT_MEMORY)
    context.set_max_stack_size(SCRIPT_STACK)
    # The engine parses the whole text before it executes the first statement, which ends the execution.
    parse = context.eval(f"(() => {{ const evaluate = eval; return (source) => evaluate('{STOP}' + source); }})()")
    context.set_time_limit(order["limit"])

    def error_of(source):
        try:
            parse(source)
        except quickjs.JSException as error:
            return javascript_syntax_error(str(error))

    return parse_all(order, inputs, error_of)


def javascript_syntax_error(text):
    """Return message, line and column of an error, or None if it is no syntax error."""
    message, _, stack = text.partition("\n")
    if not message.startswith("SyntaxError"):
        return None
    # Errors of regular expressions have no place.
    place = re.match(r"\s*at <input>:(\d+):(\d+)", stack)
    line, column = (int(place[1]), int(place[2])) if place else (0, 0)
    return message[:1000], line, max(column - len(STOP), 1) if line == 1 else column


def parse_jq(order, inputs):
    """Return the syntax error of each jq program, or None."""

    def error_of(source):
        try:
            compile_jq(source)
        except ValueError as error:
            message = error_line(error)
            place = re.search(r" at <top-level>, line (\d+), column (\d+):?$", message)
            return (message[: place.start()], int(place[1]), int(place[2])) if place else (message.rstrip(":"), 0, 0)

    return parse_all(order, inputs, error_of)


LANGUAGES = {"javascript": run_javascript, "javascript-syntax": parse_javascript, "jq": run_jq, "jq-syntax": parse_jq}
