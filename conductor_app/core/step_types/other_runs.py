"""Steps that read and change runs and tasks by their ids: UPDATE_TASK, GET_WORKFLOW, TERMINATE_WORKFLOW.

Conductor's open-source server has these types in its user interface only (`ui-next`, `UpdateTaskForm`,
`GetWorkflowTaskForm`, `TerminateWorkflowForm`). The names of inputs and outputs are those of these forms and of Orkes'
documentation: https://orkes.io/content/reference-docs/system-tasks/update-task,
https://orkes.io/content/reference-docs/operators/get-workflow and
https://orkes.io/content/reference-docs/operators/terminate-workflow.
"""

from collections.abc import Iterator

from ..definition import Document
from ..schemas import TEXT, YES_NO
from ..step_forms import ROWS, TASK_STATUSES, choice_member, gettext_noop, input_member, step_of
from .base import BuiltIn


class OtherRunStep(BuiltIn):
    """Executed by a built-in worker, with the permissions of the starter of the run."""

    is_isolated = False


class UpdateTaskStep(OtherRunStep):
    """Completes or fails a task: of the run, or of another one."""

    type = "UPDATE_TASK"
    label = gettext_noop("Update task")
    icon = "message"
    receiving_inputs = ("workflowId", "taskRefName", "taskId")
    required_inputs = ("taskStatus",)
    output_members = {"workflowId": None, "taskId": None, "taskOutput": None}
    output_sample = {"workflowId": "", "taskId": "", "taskOutput": {}}
    summary = gettext_noop("Complete or fail a task, such as a wait or a human task")
    search_words = gettext_noop("signal resolve")
    sample = (
        step_of(
            type,
            "update_task",
            inputParameters={
                "taskStatus": "COMPLETED",
                "mergeOutput": False,
                "workflowId": "${workflow.workflowId}",
                "taskRefName": "my_task",
            },
        ),
    )
    members = (
        input_member("workflowId", gettext_noop("Workflow id"), TEXT),
        input_member("taskRefName", gettext_noop("Reference of the task"), TEXT),
        input_member("taskId", gettext_noop("Task id"), TEXT, help=gettext_noop("In place of workflow and reference")),
        choice_member("taskStatus", gettext_noop("Status of the task"), TASK_STATUSES),
        input_member("taskOutput", gettext_noop("Output of the task"), ROWS),
        input_member(
            "mergeOutput",
            gettext_noop("Merge the output"),
            YES_NO,
            "",
            gettext_noop("Otherwise it replaces what the task has."),
        ),
    )

    def check(self, step: Document, template: Document) -> Iterator[str]:
        yield from super().check(step, template)
        if not any(
            inputs.get(name) for inputs in (step["inputParameters"], template) for name in ("taskId", "taskRefName")
        ):
            yield "inputParameters.taskId"


class GetWorkflowStep(OtherRunStep):
    """Completes with the document of a run."""

    type = "GET_WORKFLOW"
    label = gettext_noop("Get workflow")
    icon = "workflow"
    receiving_inputs = ("id",)
    required_inputs = ("id",)
    output_sample = {"workflowId": "", "status": "COMPLETED", "input": {}, "output": {}}
    summary = gettext_noop("Read the status, input and output of a run")
    search_words = gettext_noop("status lookup")
    sample = (
        step_of(type, "get_workflow", inputParameters={"id": "${workflow.input.workflowId}", "includeTasks": False}),
    )
    members = (
        input_member("id", gettext_noop("Workflow id"), TEXT),
        input_member("includeTasks", gettext_noop("With its tasks"), YES_NO, options=""),
    )


class TerminateWorkflowStep(OtherRunStep):
    """Terminates runs."""

    type = "TERMINATE_WORKFLOW"
    label = gettext_noop("Terminate workflows")
    icon = "end"
    receiving_inputs = ("workflowId",)
    required_inputs = ("workflowId",)
    output_members = {"terminatedWorkflows": None}
    output_sample = {"terminatedWorkflows": []}
    summary = gettext_noop("Terminate other runs")
    search_words = gettext_noop("cancel kill")
    sample = (
        step_of(
            type,
            "terminate_workflow",
            inputParameters={
                "workflowId": ["${workflow.input.workflowId}"],
                "terminationReason": "",
                "triggerFailureWorkflow": False,
            },
        ),
    )
    members = (
        input_member("workflowId", gettext_noop("Workflow ids"), help=gettext_noop("An id, or a JSON list of ids")),
        input_member("terminationReason", gettext_noop("Reason"), TEXT),
        input_member("triggerFailureWorkflow", gettext_noop("Start failure workflows"), YES_NO, options=""),
    )
