"""The reader of pages: what it takes for code, and when it reports a difference."""

import pytest

from tests.docs.code_blocks import read_code_blocks
from tests.docs.json_checks import check_json
from tests.docs.output_pattern import output_contains, output_matches

PAGE = """
```json title="order.json"
{}
```

<!-- not executed: the server of the tests
is already running -->
```bash
conductor-app serve
```

1. A block in a list:

   ```bash title="Second terminal"
   echo hello
   ```

```text title="Output"
hello
```

<!-- hidden: touch clicked -->
"""


def test_blocks_have_a_language_a_title_and_an_exemption():
    file, exempt, terminal, output, hidden = read_code_blocks(PAGE)

    assert (file.language, file.title, file.is_file) == ("json", "order.json", True)
    assert exempt.exemption == "the server of the tests is already running"
    assert (terminal.text, terminal.is_terminal, terminal.exemption) == ("echo hello\n", True, "")
    assert output.is_output
    assert (hidden.language, hidden.text) == ("bash", "touch clicked")


@pytest.mark.parametrize(
    ("shown", "printed", "matches"),
    [
        ("a\nb", "a\nb\n", True),
        ("a", "a\nb\n", False),
        ("id …, done", "id 4711, done\n", True),
        ("id …, done", "id 4711\n, done\n", False),
        ("a\n…\nd", "a\nb\nc\nd\n", True),
        ("a\n…\nd", "a\nd\n", True),
        ("a.c", "abc\n", False),
    ],
)
def test_an_ellipsis_in_an_output_stands_for_any_text(shown, printed, matches):
    assert output_matches(shown, printed) is matches


def test_the_output_of_a_running_process_may_have_further_lines_around_it():
    assert output_contains("ready", "starting\nready\nworking\n")
    assert not output_contains("ready", "not ready yet\n")


def test_a_command_that_prints_something_else_fails_the_page(page_run):
    page_run.execute(read_code_blocks("```bash\necho -n 1 | tee -a calls\n```")[0])

    with pytest.raises(pytest.fail.Exception, match="the page shows\n2\n"):
        for block in read_code_blocks('```bash\npython -c "print(1)"\n```\n\n```text title="Output"\n2\n```'):
            page_run.execute(block)


def test_a_command_that_fails_fails_the_page(page_run):
    with pytest.raises(pytest.fail.Exception, match="exit status 3"):
        page_run.execute(read_code_blocks("```bash\nfalse || exit 3\n```")[0])


def test_a_terminal_keeps_its_folder_variables_and_functions(page_run):
    page = """
```bash
mkdir inner && cd inner
NAME=ann
greet() { echo "Hello $1"; }
```

```bash
greet "$NAME in $(basename "$PWD")"
```

```text title="Output"
Hello ann in inner
```
"""
    for block in read_code_blocks(page):
        page_run.execute(block)


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "order", "version": 1, "tasks": []}',
        '{"name": "order", "version": 1, "tasks": [{"name": "pack", "taskReferenceName": "pack", "type": "SIMPLE"}],'
        ' "outputParameters": {"x": "${pak.output.x}"}}',
        '{"name": "pack", "retryCount": -1}',
        '{"name": "paid", "actions": []}',
        '{"name": ',
    ],
)
def test_a_definition_with_an_error_or_a_finding_fails_the_page(text, db):
    with pytest.raises((AssertionError, ValueError)):
        check_json(text)
