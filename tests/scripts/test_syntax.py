"""Syntax errors of scripts: found by the engines, without executing the scripts."""

import pytest

from conductor_app.scripts import pool as syntax
from conductor_app.scripts.pool import ScriptsUnavailable, ScriptText, syntax_faults


@pytest.mark.parametrize(
    ("language", "source", "place", "message"),
    [
        ("javascript", "if ($.a b) {", (1, 9), "Unexpected identifier 'b'"),
        ("javascript", "let a = 1;\nlet b = ;", (2, 9), "unexpected token"),
        ("javascript", "return $.a", (1, 1), "return not in a function"),
        ("javascript", "/(/", (0, 0), "expecting ')'"),
        ("jq", ".a | [", (1, 6), "unexpected end of file"),
        ("jq", ".a |\n nothing(1)", (2, 2), "nothing/1 is not defined"),
        ("python", "x = 1\nreturn x +", (2, 11), "Expected an expression"),
        ("python", "return $.x", (1, 8), "write name instead of $.name"),
        ("python", "if x:", (1, 0), "ends within a statement"),
    ],
)
def test_a_syntax_error_has_its_place(language, source, place, message):
    script = ScriptText(language, source)

    fault = syntax_faults([script])[script]

    assert (fault.line, fault.column) == place
    assert message in fault.message


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("javascript", "$.items.filter(i => i > 10).length > 0 ? 'big' : 'small'"),
        ("javascript", "nobody.knows(this)"),
        ("javascript", "throw new Error('at run time')"),
        ("javascript", "while (true);"),
        ("javascript", "let a = 1; function String() {} a"),
        ("javascript", "(function () { return 1; })();"),
        ("jq", ".a[] | select(.b) | {c}"),
        ("jq", "error"),
        ("python", "import json\nreturn json.dumps(nobody)"),
        ("python", "text = '''a\nb'''\nreturn text"),
        ("python", "while True:\n    pass"),
    ],
)
def test_a_script_that_can_be_parsed_has_no_fault_and_is_not_executed(language, source):
    assert syntax_faults([ScriptText(language, source)]) == {}


def test_declarations_of_one_script_do_not_disturb_the_next():
    scripts = [ScriptText("javascript", f"let a = {number}; const eval = a") for number in range(3)]

    assert syntax_faults(scripts) == {}


def test_faults_are_those_of_their_scripts():
    good, bad, worse = (ScriptText("javascript", source) for source in ("1", "1 +", "2 +"))

    assert set(syntax_faults([good, bad, worse, good])) == {bad, worse}


def test_scripts_are_not_refused_without_a_helper_process(monkeypatch):
    def refuse(*_args, **_more):
        raise ScriptsUnavailable("busy")

    monkeypatch.setattr(syntax, "evaluate", refuse)

    assert syntax_faults([ScriptText("javascript", "1 +")]) == {}


def test_scripts_after_the_time_limit_are_not_refused(monkeypatch):
    monkeypatch.setattr(syntax, "SECONDS", 0.0)
    scripts = [ScriptText("jq", f".a{number} | [") for number in range(200)]

    assert len(syntax_faults(scripts)) < len(scripts)


@pytest.mark.parametrize("program", ["[" * 9000 + "." + "]" * 9000, ".a+" * 5000 + "["])
def test_a_jq_program_that_would_take_long_to_compile_hides_no_fault_of_others(program):
    bad = ScriptText("jq", ".a |")

    assert set(syntax_faults([ScriptText("jq", program), bad])) == {bad}
