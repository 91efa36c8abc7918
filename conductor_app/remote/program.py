"""The click program of all remote commands, and shell completion for `conductor-app`."""

from collections.abc import Iterable, Sequence

import click
from click.shell_completion import get_completion_class

from .folder_commands import apply, drift, export, plan
from .inspection_commands import failures, queues, tasks
from .run_commands import runs

PROGRAM = "conductor-app"
COMPLETION_VARIABLE = "_CONDUCTOR_APP_COMPLETE"
"""The variable with which a shell asks for completions, as click names it."""
SHELLS = ("bash", "zsh", "fish")
GROUPS: dict[str, click.Command] = {"runs": runs, "queues": queues, "failures": failures, "tasks": tasks}


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print a script that completes subcommands and options.

    \b
    bash:  source <(conductor-app completion bash)
    zsh:   source <(conductor-app completion zsh)
    fish:  conductor-app completion fish | source
    """  # noqa: D301
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(build_program(()), {}, PROGRAM, COMPLETION_VARIABLE).source())


FOLDER_COMMANDS: dict[str, click.Command] = {"plan": plan, "apply": apply, "drift": drift, "export": export}
REMOTE_COMMANDS: dict[str, click.Command] = {**GROUPS, **FOLDER_COMMANDS, "completion": completion}


def build_program(other_names: Iterable[str]) -> click.Group:
    """Return a program with all commands. `other_names`: subcommands that are only completed, not executed."""
    others: dict[str, click.Command] = {name: click.Command(name) for name in other_names}
    return click.Group(PROGRAM, commands={**others, **REMOTE_COMMANDS})


def execute(name: str, arguments: Sequence[str]) -> None:
    """Execute a remote command, and exit with its status."""
    REMOTE_COMMANDS[name].main(list(arguments), prog_name=f"{PROGRAM} {name}")


def print_completions(other_names: Iterable[str]) -> None:
    """Print the completions that a shell asks for, and exit."""
    build_program(other_names).main([], prog_name=PROGRAM, complete_var=COMPLETION_VARIABLE)
