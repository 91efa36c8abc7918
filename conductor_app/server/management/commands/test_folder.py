"""`conductor-app test`: execute the tests of a folder of definitions in memory, without a server and its database."""

import json
import re
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from django.apps import apps
from django.core.management.base import BaseCommand, CommandError

from conductor_app.db.database import connection
from conductor_app.tools.importers.conductor import clean_text
from conductor_app.tools.importers.folders import TestResult, execute_test, save_folder
from conductor_app.tools.remote.files import FolderDocument, FolderError, read_folder

ILLEGAL_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
Executed = list[tuple[FolderDocument, TestResult]]


class Command(BaseCommand):
    """Execute the tests in the files `*.test.yaml` of a folder."""

    help = "Execute the tests of a folder of definitions, without a server. The exit status is 1 if one of them fails."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("-f", "--folder", required=True, help="Folder with the definitions and their tests.")
        parser.add_argument("--junit", metavar="FILE", help="Write the results as JUnit XML.")
        parser.add_argument("--json", action="store_true", help="Print the results as JSON.")

    def handle(self, *args: object, **options: Any) -> None:
        try:
            documents = read_folder(options["folder"])
            tests = read_folder(options["folder"], tests=True)
        except FolderError as error:
            raise CommandError(str(error)) from None
        if not tests:
            raise CommandError(f"{options['folder']} contains no tests: files with the ending .test.yaml.")
        create_tables_in_memory()
        _require_valid(documents)
        executed = [(test, execute_test(test.value)) for test in tests]
        if options["junit"]:
            _write_junit(Path(options["junit"]), executed)
        if options["json"]:
            results = [{**asdict(result), "source": test.place()} for test, result in executed]
            self.stdout.write(json.dumps(results, indent=2, ensure_ascii=False))
        else:
            self._print(executed)
        if not all(result.has_passed for _, result in executed):
            raise SystemExit(1)

    def _print(self, executed: Executed) -> None:
        for test, result in executed:
            sign, style = ("✓", self.style.SUCCESS) if result.has_passed else ("✗", self.style.ERROR)
            self.stdout.write(style(clean_text(f"{sign} {result.workflow}: {result.name}")))
            for line in _problems(result):
                self.stdout.write(clean_text(f"    {test.place()}: {line}"))
        failed = sum(not result.has_passed for _, result in executed)
        self.stdout.write(f"{len(executed) - failed:,} passed, {failed:,} failed.")


def create_tables_in_memory() -> None:
    """Replace the database of this process by an empty one in memory."""
    connection.close()
    connection.settings_dict["NAME"] = ":memory:"
    connection.disable_constraint_checking()
    with connection.schema_editor() as editor:
        for model in apps.get_app_config("conductor").get_models():
            editor.create_model(model)


def _require_valid(documents: Sequence[FolderDocument]) -> None:
    lines = []
    for invalid in save_folder([each.value for each in documents]):
        document = documents[invalid.position]
        errors = [f"{document.place(each.path)}: {each.path}: {each.message}" for each in invalid.validation_errors]
        lines += errors or [f"{document.place()}: {invalid.problem}"]
    if lines:
        raise CommandError("\n".join(map(clean_text, lines)))


def _problems(result: TestResult) -> list[str]:
    return [*([result.error] if result.error else []), *result.differences]


def _write_junit(path: Path, executed: Executed) -> None:
    root = ElementTree.Element("testsuites")
    for file in dict.fromkeys(test.path for test, _ in executed):
        of_file = [(test, result) for test, result in executed if test.path == file]
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_xml_text(str(file)),
            tests=str(len(of_file)),
            failures=str(sum(bool(result.differences) for _, result in of_file)),
            errors=str(sum(bool(result.error) for _, result in of_file)),
            time=f"{sum(result.seconds for _, result in of_file):.3f}",
        )
        for test, result in of_file:
            _add_case(suite, test, result)
    try:
        ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.") from None


def _add_case(suite: ElementTree.Element, test: FolderDocument, result: TestResult) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=_xml_text(result.workflow),
        name=_xml_text(result.name),
        file=_xml_text(str(test.path)),
        line=test.place().rpartition(":")[2],
        time=f"{result.seconds:.3f}",
    )
    if problems := _problems(result):
        kind = "error" if result.error else "failure"
        found = ElementTree.SubElement(case, kind, message=_xml_text(problems[0]))
        found.text = _xml_text("\n".join(problems))


def _xml_text(text: str) -> str:
    return ILLEGAL_IN_XML.sub("\ufffd", text)
