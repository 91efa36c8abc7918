"""Sample documents for new definitions: the smallest that work, with the most common fields."""

from ...core.step_structure import DEFAULT_TYPE

NEW_WORKFLOW = {
    "name": "my_workflow",
    "version": 1,
    "description": "",
    "ownerEmail": "",
    "tasks": [
        {
            "name": "my_task",
            "taskReferenceName": "first",
            "type": DEFAULT_TYPE,
            "inputParameters": {"order": "${workflow.input.order}"},
        }
    ],
    "outputParameters": {"result": "${first.output.result}"},
    "timeoutSeconds": 0,
    "timeoutPolicy": "ALERT_ONLY",
}
NEW_TASK = {
    "name": "my_task",
    "description": "",
    "ownerEmail": "",
    "retryCount": 3,
    "retryLogic": "FIXED",
    "retryDelaySeconds": 60,
    "timeoutSeconds": 3600,
    "responseTimeoutSeconds": 600,
    "timeoutPolicy": "TIME_OUT_WF",
}
