"""Execution of a page: its commands in order, in an empty folder, against a server."""

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.docs.code_blocks import CodeBlock
from tests.docs.output_pattern import output_contains, output_matches

SHOWN_URL = "http://127.0.0.1:8000"
SECONDS = 120
PATIENCE_SECONDS = 40
TOOLS = {
    "curl": "curl",
    "jq": "jq",
    "node": "Node.js",
    "npm": "npm",
    "mvn": "Maven",
    "java": "a JDK",
    "openssl": "OpenSSL",
}
CHANGES = re.compile(r"\s(-X|--data|--data-raw|--json|-F)\s|curl (?!.*-G).* -d |python|node |mvn ")
"""Commands that are not repeated until they print what the page shows."""
# The state of a terminal between two blocks: its variables, its functions, and its folder.
PROLOGUE = 'set -ea -o pipefail; [ ! -f "$TERMINAL" ] || . "$TERMINAL"\n'
EPILOGUE = '\n{ export -p; declare -f; printf "cd %q\\n" "$PWD"; } > "$TERMINAL"\n'


class PageRun:
    """A reader who follows a page literally: one folder, one terminal, and further ones for what keeps running.

    `python`: the interpreter of the environment that the page creates.
    """

    def __init__(
        self, folder: Path, server: str, check_json: Callable[[str], None], python: Path = Path(sys.executable)
    ) -> None:
        self.folder = folder
        self.python = python
        self.server = server
        self.check_json = check_json
        self.printed = ""
        self.last: CodeBlock | None = None
        self.terminals: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}
        self.folders: dict[str, Path] = {}
        self.environment = {
            "PATH": f"{folder / 'bin'}:{python.parent}:{os.environ['PATH']}",
            "HOME": os.environ.get("HOME", str(folder)),
            "TERMINAL": str(folder / ".terminal"),
            "PYTHONUNBUFFERED": "1",
            "NO_COLOR": "1",
            "LANG": "C.UTF-8",
        }

    def execute(self, block: CodeBlock) -> None:
        """Do what a block says; fail with its line if the result is not what the page shows."""
        if block.exemption:
            self._provide_environment(block)
            self.last = None
        elif block.is_output:
            self._compare(block)
        elif block.is_file:
            self._create_file(block)
        elif block.language == "json":
            self.check_json(block.text)
        elif block.language in ("bash", "python"):
            self._require_tools(block)
            self.last = block
            if block.is_terminal:
                self._start(block)
            else:
                self.printed = self._run(block)

    def _provide_environment(self, block: CodeBlock) -> None:
        """Link the environment of the interpreter where an exempt block would create one."""
        if "-m venv .venv" in block.text:
            (self._working_folder() / ".venv").symlink_to(self.python.parents[1])

    def stop(self) -> None:
        """End the processes of the other terminals."""
        for title in list(self.terminals):
            self._close(title)

    def _close(self, title: str) -> None:
        process, _ = self.terminals.pop(title)
        # Child processes can outlive the command, so the group is ended even if the command is.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _translate(self, text: str) -> str:
        return text.replace(SHOWN_URL, self.server).replace(SHOWN_URL[7:], self.server[7:])

    def _create_file(self, block: CodeBlock) -> None:
        if block.language == "json":
            self.check_json(block.text)
        elif block.language == "python":
            ast.parse(block.text)
        path = self._working_folder() / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._translate(block.text), encoding="utf-8")

    def _working_folder(self) -> Path:
        terminal = Path(self.environment["TERMINAL"])
        found = re.findall(r"^cd (.*)$", terminal.read_text(encoding="utf-8"), re.M) if terminal.exists() else []
        return Path(found[-1]) if found else self.folder

    def _require_tools(self, block: CodeBlock) -> None:
        for tool, name in TOOLS.items():
            if re.search(rf"(^|[\s(|]){tool}\s", block.text, re.MULTILINE) and not shutil.which(tool):
                pytest.skip(f"{name} ({tool}) is not installed: the commands of this page cannot be executed.")

    def _command(self, block: CodeBlock) -> list[str]:
        text = self._translate(block.text)
        return [str(self.python), "-c", text] if block.language == "python" else ["bash", "-c", text]

    def _run(self, block: CodeBlock) -> str:
        command = self._command(block)
        if block.language == "bash":
            command[-1] = f"{PROLOGUE}{command[-1]}{EPILOGUE}"
        done = subprocess.run(
            command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=SECONDS
        )
        if done.returncode:
            pytest.fail(
                f"Line {block.line}: exit status {done.returncode}.\n{block.text}\n{done.stdout}{done.stderr}"
                f"{self._output_of_terminals()}"
            )
        return done.stdout + done.stderr

    def _start(self, block: CodeBlock) -> None:
        if block.title in self.terminals:
            self._close(block.title)
        output = self.folder / f".output-{block.line}"
        environment = {**self.environment, "TERMINAL": str(self.folder / ".other-terminal")}
        start = self.folders.get(block.title, self.folder)
        if entered := re.match(r"cd (\S+)\n", block.text):
            self.folders[block.title] = start / entered[1]
        with output.open("wb") as target:
            process = subprocess.Popen(
                self._command(block),
                cwd=start,
                env=environment,
                stdout=target,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.terminals[block.title] = (process, output)

    def _compare(self, shown: CodeBlock) -> None:
        assert self.last, f"Line {shown.line}: this output follows no executed block."
        matches = output_contains if self.last.is_terminal else output_matches
        until = time.monotonic() + PATIENCE_SECONDS
        while not matches(self._translate(shown.text), self.printed):
            can_change = self.last.is_terminal or not CHANGES.search(self.last.text)
            if not can_change or time.monotonic() > until:
                pytest.fail(
                    f"Line {shown.line}: the page shows\n{shown.text}\nand the output is\n{self.printed}"
                    f"{self._output_of_terminals()}"
                )
            if self.last.is_terminal:
                time.sleep(0.1)
                self.printed = self.terminals[self.last.title][1].read_text(encoding="utf-8")
            else:
                time.sleep(0.3)
                self.printed = self._run(self.last)

    def _output_of_terminals(self) -> str:
        outputs = (path.read_text(encoding="utf-8")[-3000:] for _, path in self.terminals.values())
        return "".join(f"\n-- another terminal:\n{output}" for output in outputs)
