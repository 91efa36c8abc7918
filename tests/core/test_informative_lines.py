"""The line of an error that lists, sentences and failure groups show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conductor_app.core.errors import MAX_REASON_LENGTH, quote_reason, shorten_reason
from conductor_app.core.failure_grouping import informative_line
from tests.hypothesis_profile import property_settings

TRACEBACK = """Traceback (most recent call last):
  File "worker.py", line 12, in book_van
    place = address["zip"]
            ~~~~~~~^^^^^^^
KeyError: 'zip'
"""
JAVA = """java.lang.RuntimeException: order failed
\tat com.example.Worker.run(Worker.java:17)
\tSuppressed: java.io.IOException: close failed
\tCaused by: java.io.IOException: disk
Caused by: java.lang.IllegalStateException: no session
\tat com.example.Session.open(Session.java:3)
Caused by: java.net.ConnectException: Connection refused
\t... 12 more
"""
LINES = {
    "one line": ("no funds", "no funds"),
    "first of several lines": ("\n 502 from gateway \ndetails", "502 from gateway"),
    "Python": (TRACEBACK, "KeyError: 'zip'"),
    "Python behind a message": (f"The van cannot be booked.\n{TRACEBACK}", "KeyError: 'zip'"),
    "Python without indentation": ("\n".join(map(str.strip, TRACEBACK.splitlines())), "KeyError: 'zip'"),
    "chained exceptions": (
        f"{TRACEBACK}\nDuring handling of the above exception, another exception occurred:\n\n"
        f"{TRACEBACK.replace('KeyError', 'app.NoAddress')}",
        "app.NoAddress: 'zip'",
    ),
    "message of several lines": (
        f"{TRACEBACK.rsplit('KeyError')[0]}ValidationError: 1 error for Order\nzip\n  field required",
        "ValidationError: 1 error for Order",
    ),
    "exception without a message": (TRACEBACK.replace("KeyError: 'zip'", "KeyboardInterrupt"), "KeyboardInterrupt"),
    "traceback that was cut off": (TRACEBACK[:90], 'File "worker.py", line 12, in book_van'),
    "traceback that is empty": ("502 from gateway\nTraceback (most recent call last):", "502 from gateway"),
    "Java": (JAVA, "java.net.ConnectException: Connection refused"),
    "Java without causes": (JAVA.partition("\tSuppressed")[0], "java.lang.RuntimeException: order failed"),
    "JavaScript": (
        "Error: order failed\n    at run (worker.js:3:9) {\n  [cause]: TypeError: x is undefined\n      at f\n}",
        "TypeError: x is undefined",
    ),
    ".NET": (
        "System.AggregateException: failed ---> App.OuterException: o ---> System.TimeoutException: 30 s\n  at A.B()",
        "System.TimeoutException: 30 s",
    ),
    "JSON": ('{"code": 7, "message": "no zip code"}', "no zip code"),
    "JSON behind a status": ('400 Bad Request: {"title": "Invalid", "detail": "no zip"}', "400 Bad Request: no zip"),
    "nested JSON": ('{"error": {"code": 3, "Message": "quota exceeded"}}', "quota exceeded"),
    "list in JSON": ('{\n  "errors": [\n    {"message": "no zip"}, {"message": "no name"}\n  ]\n}', "no zip"),
    "JSON without a message": ('KeyError: {"a": 1}', 'KeyError: {"a": 1}'),
    "deep JSON": ('{"a":' * 3_000, f"{'{' + chr(34) + 'a' + chr(34) + ':'}" * 60),
    "reason of a run": (f"Task 7f failed with status: FAILED and reason: '{TRACEBACK.strip()}'", "KeyError: 'zip'"),
    "reasons of permissive tasks": (
        "Task 7f failed with status: FAILED and reason: 'no van'. Task 8f failed with status: FAILED and reason: 'x'",
        "no van",
    ),
    "reason of a sub-workflow": (
        "Sub workflow book van.1/8e failure reason: Task 7f failed with status: FAILED and reason: 'no van'",
        "no van",
    ),
    "nothing": (" \n", ""),
}


@pytest.mark.parametrize(("text", "line"), LINES.values(), ids=LINES)
def test_the_line_that_names_the_cause_is_chosen(text, line):
    assert informative_line(text, 10_000)[: max(len(line), 1)] == line
    assert len(informative_line(text)) <= 300


def test_a_long_traceback_keeps_its_cause_at_each_level_of_sub_workflows():
    reason = TRACEBACK.replace(
        '  File "worker.py"', '  File "frame.py", line 1, in call\n' * 400 + '  File "worker.py"'
    )
    for level in range(5):
        reason = shorten_reason(f"Task {level} failed with status: FAILED and reason: '{reason}'")
        assert len(reason) <= MAX_REASON_LENGTH
        assert informative_line(reason) == "KeyError: 'zip'"
        reason = f"Sub workflow order.1/{level} failure reason: {quote_reason(reason, str(level))}"
        assert informative_line(reason) == "KeyError: 'zip'"


def test_a_long_reason_of_one_line_keeps_its_beginning():
    assert shorten_reason("no funds " * 1_000) == ("no funds " * 1_000)[:1_999] + "…"


@property_settings(100)
@given(
    st.text(max_size=400)
    | st.lists(st.sampled_from([*(text for text, _ in LINES.values()), " ", "\n", "'", "{"])).map("".join)
)
def test_the_line_of_a_line_is_that_line(text):
    line = informative_line(text)

    assert informative_line(line) == line
    assert "\n" not in line
