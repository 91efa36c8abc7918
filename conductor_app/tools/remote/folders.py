"""`conductor-app plan`, `apply`, `drift` and `export`: definitions in a folder, such as a Git repository."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

import click

from ...core.document.json_positions import recognize_kind
from .client import ApiClient, ServerError, clean_text, format_time, print_json, server_options
from .files import FolderDocument, FolderError, find_commit, read_folder, write_documents

Document = dict[str, Any]
HAS_CHANGES = 2
APPLY_SECONDS = 600
MAX_FILE_NAME = 60
"""The maximum number of characters of a new file's name, which has at most 255 bytes."""
SIGNS = {
    "create": ("+", "green"),
    "update": ("~", "yellow"),
    "new version": ("~", "yellow"),
    "adopt": ("=", "blue"),
    "delete": ("-", "red"),
    "discard": ("-", "red"),
    "keep": (" ", None),
    "invalid": ("!", "red"),
}
ENDINGS = {
    "create": "will be created",
    "update": "will be replaced",
    "new version": "will get a new version",
    "adopt": "is as wanted, and will be recorded as applied",
    "delete": "will be deleted: the folder no longer contains it",
    "discard": "was deleted on the server, and is no longer in the folder",
    "keep": "is no longer in the folder, and stays. --prune deletes it",
    "invalid": "is invalid",
}

folder_option = click.option(
    "--folder", "-f", required=True, type=click.Path(), help="Folder or file with the definitions."
)
label_option = click.option(
    "--label",
    "-l",
    envvar="CONDUCTOR_SOURCE_LABEL",
    required=True,
    help="Name of the source; definitions belong to it.  [env: CONDUCTOR_SOURCE_LABEL]",
)


def plan_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a plan."""
    options = (
        folder_option,
        label_option,
        click.option("--commit", default="", help="Commit of the folder; that of its Git repository by default."),
        click.option("--prune", is_flag=True, help="Delete what this source has applied and no longer contains."),
        click.option("--overwrite", is_flag=True, help="Overwrite edits that were made on the server."),
        click.option("--take-over", is_flag=True, help="Change definitions that belong to other sources."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@plan_options
@server_options
def plan(server: ApiClient, as_json: bool, folder: str, **options: Any) -> None:
    """Show what applying a folder of definitions would change.

    The exit status is 0 without changes, 2 with changes, and 1 after an error or with a problem.
    """
    documents = _read(folder)
    request = _request(folder, documents, **options)
    sys.exit(_print_plan(_send(server, "plan", request), documents, as_json))


@click.command()
@plan_options
@click.option("--dry-run", is_flag=True, help="Show the plan only, as `plan` does.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for a confirmation.")
@server_options
def apply(server: ApiClient, as_json: bool, folder: str, dry_run: bool, yes: bool, **options: Any) -> None:
    """Create and change the definitions of a folder on the server, after showing the plan.

    The exit status is 0 if everything is as in the folder, and 1 otherwise; with --dry-run it is that of `plan`.
    """
    documents = _read(folder)
    request = _request(folder, documents, **options)
    planned = _send(server, "plan", request)
    if dry_run:
        sys.exit(_print_plan(planned, documents, as_json))
    is_quiet = as_json and yes
    status = 0 if is_quiet else _print_plan(planned, documents, as_json=False, to_stderr=as_json)
    if planned["isRefused"]:
        if is_quiet:
            print_json(planned)
        raise click.ClickException("The plan has problems, so nothing was applied.")
    if not planned["changesSomething"]:
        if as_json:
            print_json({"label": planned["label"], "items": [], "failed": 0})
        return
    if status != 0 and not yes:
        click.confirm("Apply these changes?", abort=True, err=as_json)
    # The server refuses another plan than the one that was shown.
    result = _send(server, "apply", {**request, "planDigest": planned["planDigest"]})
    _print_result(result, documents, as_json)
    sys.exit(1 if result["failed"] else 0)


@click.command()
@click.option("--label", "-l", envvar="CONDUCTOR_SOURCE_LABEL", default="", help="Name of the source; all by default.")
@server_options
def drift(server: ApiClient, as_json: bool, label: str) -> None:
    """Show which definitions were edited on the server since a folder has applied them.

    The exit status is 0 if there are none, 2 if there are, and 1 after an error.
    """
    found = server.get("definitions", "drift", label=label)["definitions"]
    drifted = [item for item in found if item["state"] != "unchanged"]
    if as_json:
        print_json(found)
    elif not drifted:
        click.echo(f"{len(found):,} definitions are as they were applied.")
    for item in drifted if not as_json else ():
        _print_drift(item)
    sys.exit(HAS_CHANGES if drifted else 0)


@click.command()
@folder_option
@label_option
@click.option("--dry-run", is_flag=True, help="Show the files only.")
@server_options
def export(server: ApiClient, as_json: bool, folder: str, label: str, dry_run: bool) -> None:
    """Write edits that were made on the server back into the files of a folder.

    A file that changes is written again without its comments. Deleted definitions are listed, and stay in the folder.
    """
    documents = _read(folder)
    found = server.get("definitions", "drift", label=label)["definitions"]
    drifted = [item for item in found if item["state"] != "unchanged"]
    results = []
    changed: dict[Path, dict[int, Document]] = {}
    for item in drifted:
        given = next((each for each in documents if _is_same(each, item)), None)
        if item["state"] == "deleted":
            results.append({"kind": item["kind"], "name": item["name"], "result": "deleted on the server"})
            continue
        path = given.path if given else _new_path(Path(folder), item, changed)
        number = given.number if given else 0
        kept = {"kind": given.value["kind"]} if given and "kind" in given.value else {}
        changed.setdefault(path, {})[number] = {**kept, **item["current"]} if given else _with_kind(item)
        results.append({"kind": item["kind"], "name": item["name"], "result": "exported", "file": str(path)})
    if not dry_run:
        for path, replaced in changed.items():
            _write(path, [each for each in documents if each.path == path], replaced)
    if as_json:
        print_json(results)
        return
    for result in results:
        click.echo(clean_text(f"{result['kind']} {result['name']}: {result['result']} {result.get('file', '')}"))
    if not results:
        click.echo("There is nothing to export.")


def _read(folder: str) -> list[FolderDocument]:
    try:
        return read_folder(folder)
    except FolderError as error:
        raise click.ClickException(str(error)) from None


def _request(folder: str, documents: Sequence[FolderDocument], **options: Any) -> Document:
    return {
        "label": options["label"],
        "commit": (options["commit"] or find_commit(folder))[:64],
        "documents": [each.value for each in documents],
        "prune": options["prune"],
        "overwrite": options["overwrite"],
        "takeOver": options["take_over"],
    }


def _send(server: ApiClient, name: str, request: Document) -> Document:
    found = server.post("definitions", name, body=request, seconds=APPLY_SECONDS)
    if not isinstance(found, dict) or "items" not in found:
        raise ServerError(f"{server.url} does not plan definitions: its version is too old.")
    return found


def _print_plan(planned: Document, documents: Sequence[FolderDocument], as_json: bool, to_stderr: bool = False) -> int:
    """Print a plan, and return the exit status."""
    if as_json:
        print_json(_with_places(planned, documents))
    else:
        for item in planned["items"]:
            if item["action"] != "unchanged" or "problem" in item:
                _print_item(item, documents, to_stderr)
        click.echo(_summary(planned["items"]), err=to_stderr)
    if planned["isRefused"]:
        return 1
    return HAS_CHANGES if planned["changesSomething"] else 0


def _print_item(item: Document, documents: Sequence[FolderDocument], to_stderr: bool) -> None:
    sign, color = SIGNS.get(item["action"], (" ", None))
    ending = ENDINGS.get(item["action"], "")
    click.echo(click.style(clean_text(f"{sign} {_title(item)} {ending}".rstrip()), fg=color), err=to_stderr)
    lines = [f"    {each}" for each in item.get("changes", ())]
    lines += [f"    edited on the server: {each}" for each in item.get("edits", ())]
    place = documents[item["document"]].place if "document" in item else None
    errors = item.get("validationErrors", ())
    lines += [f"  ! {place(each['path']) if place else ''}: {each['path']}: {each['message']}" for each in errors]
    if "problem" in item and not errors:
        lines.append(f"  ! {place() + ': ' if place else ''}{item['problem']}")
    for line in lines:
        click.echo(clean_text(line), err=to_stderr)


def _with_places(planned: Document, documents: Sequence[FolderDocument]) -> Document:
    """Return a plan with the file and line of each item, and of each error in it."""
    items = []
    for item in planned["items"]:
        if "document" in item:
            place = documents[item["document"]].place
            item = {**item, "source": place()}
            for each in item.get("validationErrors", ()):
                each["source"] = place(each["path"])
        items.append(item)
    return {**planned, "items": items}


def _title(item: Document) -> str:
    version = f", version {item['version']}" if item.get("version") else ""
    return f"{item.get('kind', 'document')} {item.get('name') or 'without a name'}{version}"


def _summary(items: Sequence[Document]) -> str:
    counts = {action: sum(item["action"] == action for item in items) for action in (*SIGNS, "unchanged")}
    words = [f"{count:,} {action}" for action, count in counts.items() if count]
    problems = sum("problem" in item for item in items)
    return f"Plan: {', '.join(words) or 'nothing'}." + (f" Problems: {problems:,}." if problems else "")


def _print_result(result: Document, documents: Sequence[FolderDocument], as_json: bool) -> None:
    if as_json:
        print_json(_with_places(result, documents))
        return
    for item in result["items"]:
        if "error" in item:
            click.echo(click.style(clean_text(f"! {_title(item)}: {item['error']}"), fg="red"))
    click.echo(f"Applied {len(result['items']) - result['failed']:,} definitions, {result['failed']:,} failed.")


def _print_drift(item: Document) -> None:
    by = f" by {item['changedBy']}" if item.get("changedBy") else ""
    at = f", {format_time(item['changedAt'])}" if item.get("changedAt") else ""
    commit = f" from commit {item['commit']}" if item.get("commit") else ""
    color = "red" if item["state"] == "deleted" else "yellow"
    click.echo(click.style(clean_text(f"~ {_title(item)} was {item['state']}{by}{at}"), fg=color))
    click.echo(clean_text(f"    applied{commit} by {item['appliedBy']}, {format_time(item['appliedAt'])}"))
    if item.get("newerVersion"):
        click.echo(f"    version {item['newerVersion']} was saved on the server")
    for each in item.get("edits", ()):
        click.echo(clean_text(f"    {each}"))


def _is_same(given: FolderDocument, item: Document) -> bool:
    stated = given.value.get("version") or 0
    return (
        recognize_kind(given.value) == item["kind"]
        and given.value.get("name") == item["name"]
        and stated == item.get("statedVersion", 0)
    )


def _with_kind(item: Document) -> Document:
    return {"kind": item["kind"], **item["current"]}


def _new_path(folder: Path, item: Document, chosen: Iterable[Path]) -> Path:
    """Return the path of a new file, which no file has and no other exported definition gets."""
    name, kind = _safe_name(item["name"]), _safe_name(item["kind"])
    taken = {path.name.casefold() for path in chosen}
    parent = folder if folder.is_dir() else folder.parent
    suffixes = chain([""], (f"-{number}" for number in count(2)))
    paths = (parent / f"{name}{suffix}.{kind}.yaml" for suffix in suffixes)
    return next(path for path in paths if path.name.casefold() not in taken and not os.path.lexists(path))


def _safe_name(name: str) -> str:
    safe = "".join(each if each.isalnum() or each in "-_." else "_" for each in name)
    return safe.lstrip(".")[:MAX_FILE_NAME] or "_"


def _write(path: Path, documents: Sequence[FolderDocument], replaced: dict[int, Document]) -> None:
    """Write a file with its documents, those that have changed replaced."""
    values = [replaced.get(each.number, each.value) for each in documents] or list(replaced.values())
    if path.suffix == ".json":
        text = json.dumps(values[0] if len(values) == 1 else values, indent=2, ensure_ascii=False) + "\n"
    else:
        text = write_documents(values)
    try:
        path.write_text(text, "utf-8")
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from None


REMOTE_COMMANDS: dict[str, click.Command] = {"plan": plan, "apply": apply, "drift": drift, "export": export}


def execute(name: str, arguments: Sequence[str]) -> None:
    """Execute a remote command, and exit with its status."""
    REMOTE_COMMANDS[name].main(list(arguments), prog_name=f"conductor-app {name}")
