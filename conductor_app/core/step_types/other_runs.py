"""Steps that read and change runs and tasks by their ids: UPDATE_TASK, GET_WORKFLOW, TERMINATE_WORKFLOW.

Conductor's open-source server has these types in its user interface only (`ui-next`, `UpdateTaskForm`,
`GetWorkflowTaskForm`, `TerminateWorkflowForm`). The names of inputs and outputs are those of these forms and of Orkes'
documentation: https://orkes.io/content/reference-docs/system-tasks/update-task,
https://orkes.io/content/reference-docs/operators/get-workflow and
https://orkes.io/content/reference-docs/operators/terminate-workflow.
"""

from collections.abc import Iterator

from ..definition import Document
from .base import BuiltIn


class OtherRunStep(BuiltIn):
    """Executed by a built-in worker, with the permissions of the starter of the run."""

    is_isolated = False


class UpdateTaskStep(OtherRunStep):
    """Completes or fails a task: of the run, or of another one."""

    type = "UPDATE_TASK"
    icon = "message"
    receiving_inputs = ("workflowId", "taskRefName", "taskId")
    required_inputs = ("taskStatus",)
    output_members = {"workflowId": None, "taskId": None, "taskOutput": None}

    def check(self, step: Document, template: Document) -> Iterator[str]:
        yield from super().check(step, template)
        if not any(
            inputs.get(name) for inputs in (step["inputParameters"], template) for name in ("taskId", "taskRefName")
        ):
            yield "inputParameters.taskId"


class GetWorkflowStep(OtherRunStep):
    """Completes with the document of a run."""

    type = "GET_WORKFLOW"
    icon = "workflow"
    receiving_inputs = ("id",)
    required_inputs = ("id",)


class TerminateWorkflowStep(OtherRunStep):
    """Terminates runs."""

    type = "TERMINATE_WORKFLOW"
    icon = "end"
    receiving_inputs = ("workflowId",)
    required_inputs = ("workflowId",)
    output_members = {"terminatedWorkflows": None}
