"""The files of a folder: YAML and JSON as values with lines, limits, and links."""

import pytest

from conductor_app.tools.remote import files as definition_files
from conductor_app.tools.remote import files as yaml_documents
from conductor_app.tools.remote.files import FolderError, read_folder, write_documents


def read(tmp_path, text, name="a.yaml"):
    (tmp_path / name).write_text(text)
    return [each.value for each in read_folder(str(tmp_path))]


def error_of(tmp_path, text, name="a.yaml") -> str:
    with pytest.raises(FolderError) as raised:
        read(tmp_path, text, name)
    return str(raised.value).replace(str(tmp_path), "")


def test_plain_texts_are_those_of_yaml_1_2(tmp_path):
    text = "country: no\nswitch: on\nday: 2026-11-24\nyes: true\nnothing: ~\ncount: 010\nsize: 1e3\nquoted: '7'\n"

    assert read(tmp_path, text) == [
        {
            "country": "no",
            "switch": "on",
            "day": "2026-11-24",
            "yes": True,
            "nothing": None,
            "count": 10,
            "size": 1000.0,
            "quoted": "7",
        }
    ]


def test_a_file_has_several_documents_and_a_list_has_one_in_each_element(tmp_path):
    assert read(tmp_path, "name: a\n---\n- name: b\n- name: c\n---\n") == [{"name": name} for name in "abc"]
    assert read(tmp_path, '[{"name": "d"}]', "b.json")[3:] == [{"name": "d"}]


def test_anchors_and_merges_are_copied(tmp_path):
    text = "base: &base {retryCount: 3, timeoutSeconds: 5}\nstep:\n  <<: *base\n  retryCount: 9\n"

    assert read(tmp_path, text)[0]["step"] == {"retryCount": 9, "timeoutSeconds": 5}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name: a\ntasks: [\n", "/a.yaml:3: Invalid YAML: while parsing a flow node"),
        ("name: a\n\tb: 1\n", "/a.yaml:2: Invalid YAML: while scanning"),
        ("name: a\nname: b\n", "/a.yaml:2: The key 'name' occurs twice in one object."),
        ("name: a\n--- \nplain text\n", "/a.yaml:3: A definition must be an object"),
        ("size: 1e999\n", "/a.yaml:1: The number 1e999 is too large."),
        ("a: !!python/object/apply:os.system [id]\n", "/a.yaml:1: The tag"),
        ("a: !secret b\n", "/a.yaml:1: The tag !secret is not supported."),
        ("a: &a [*a]\n", "/a.yaml:1: The document is nested more than 100 levels deep."),
        ("a: &a\n  <<: [*a, *a]\n", "/a.yaml:1: The document is nested more than 100 levels deep."),
    ],
)
def test_invalid_yaml_is_refused_with_its_file_and_line(tmp_path, text, expected):
    assert error_of(tmp_path, text).startswith(expected)


def test_invalid_json_is_refused_with_its_file_and_line(tmp_path):
    assert error_of(tmp_path, '{\n"name": a}', "a.json") == "/a.json:2: Invalid JSON: Expecting value."
    assert "The key 'b' occurs twice" in error_of(tmp_path, '{"b": 1, "b": 2}', "a.json")


def test_the_errors_of_all_files_are_reported_together(tmp_path):
    (tmp_path / "b.yaml").write_text("a: [")

    assert len(error_of(tmp_path, "a: {").splitlines()) == 2


def test_aliases_that_multiply_are_refused(tmp_path):
    rows = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    rows += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    assert "has more than 200,000 values, copies of aliases included" in error_of(tmp_path, "\n".join(rows))


def test_a_file_that_is_too_large_or_not_in_utf_8_is_refused(tmp_path):
    assert "is larger than 2 MB" in error_of(tmp_path, "a: " + "x" * definition_files.MAX_FILE_BYTES)
    (tmp_path / "a.yaml").write_bytes(b"a: 1\nb: \xff\n")
    with pytest.raises(FolderError, match=r"a\.yaml:2: The file is not encoded in UTF-8"):
        read_folder(str(tmp_path))


def test_a_folder_with_too_many_definitions_is_refused(tmp_path):
    text = "---\n".join(f"name: t{number}\n" for number in range(definition_files.MAX_DOCUMENTS + 1))

    assert "contains 1,001 definitions, and can contain at most 1,000" in error_of(tmp_path, text)


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "outside.yaml").write_text("name: secret\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    with pytest.raises(FolderError, match=r"link\.yaml is a link that leads out of"):
        read_folder(str(folder))

    (folder / "link.yaml").unlink()
    (folder / "linked").symlink_to(tmp_path)
    with pytest.raises(FolderError, match="linked is a link that leads out of"):
        read_folder(str(folder))


def test_hidden_files_tests_and_other_files_are_left_out(tmp_path):
    for name in (".hidden.yaml", ".git/config.yaml", "a.test.yaml", "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("name: other")

    assert read(tmp_path, "name: a\n") == [{"name": "a"}]


def test_merges_of_merges_and_documents_that_are_aliases_are_counted(tmp_path, monkeypatch):
    merges = "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 30))
    assert "The document has more than 200,000 values" in error_of(tmp_path, f"a0: &a0 {{}}\n{merges}")

    monkeypatch.setattr(yaml_documents, "MAX_ALL_VALUES", 1_000)
    assert "The files have more than 1,000 values" in error_of(tmp_path, "- &a {b: [1, 2, 3, 4]}\n" + "- *a\n" * 200)


def test_json_with_unusual_numbers_and_keys_is_refused_at_once(tmp_path):
    assert "too many digits" in error_of(tmp_path, f'{{"a": {"1" * 5_000}}}', "a.json")
    keys = ",".join(f'"{n}":1' for n in range(50_000))
    assert "occurs twice" in error_of(tmp_path, f'{{{keys},"49999":2}}', "a.json")


@pytest.mark.parametrize(
    "text", ["1e3", "0o14", "-.5", "1E5", "no", "~", "", "0x1F", "\x85", "a\nb", "12:30", "2026-11-24"]
)
def test_what_is_written_is_read_as_the_same_text(tmp_path, text):
    assert read(tmp_path, write_documents([{"value": text, text or "key": 1}])) == [{"value": text, text or "key": 1}]
