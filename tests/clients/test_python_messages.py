"""The Python SDK's workflow client sends messages to a running workflow."""

from conductor.client.workflow.task.task import TaskInterface
from conductor.client.workflow.task.task_type import TaskType

from tests.clients.shop_workflow import Shop


class Pull(TaskInterface):
    def __init__(self) -> None:
        super().__init__("next", TaskType.SIMPLE)
        self.name = "next"

    def to_workflow_task(self):
        written = super().to_workflow_task()
        written.type = "PULL_WORKFLOW_MESSAGES"
        return written


def test_a_message_reaches_the_step_that_waits_for_it(shop: Shop):
    workflow = shop.written()
    workflow >> Pull()
    workflow.register(overwrite=True)
    run_id = shop.start()

    message_id = shop.workflows.send_message(run_id, {"size": 3})

    (task,) = shop.wait_for_end(run_id).tasks
    (message,) = task.output_data["messages"]
    assert (message["id"], message["payload"]) == (message_id, {"size": 3})
