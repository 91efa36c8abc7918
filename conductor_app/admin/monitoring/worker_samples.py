"""A sample workflow, and workers for it with the official SDKs. `SERVER` stands for the address of the API."""

from dataclasses import dataclass

from ...core.step_types.simple import Simple

SAMPLE_NAME, TASK_NAME = "hello_world", "greet"
SAMPLE_TASK = {
    "name": TASK_NAME,
    "description": "Returns a greeting.",
    "retryCount": 3,
    "timeoutSeconds": 3600,
    "responseTimeoutSeconds": 60,
    "ownerEmail": "team@example.com",
}
SAMPLE_WORKFLOW = {
    "name": SAMPLE_NAME,
    "description": "Greets a person by name.",
    "version": 1,
    "schemaVersion": 2,
    "ownerEmail": "team@example.com",
    "timeoutSeconds": 86_400,
    "timeoutPolicy": "TIME_OUT_WF",
    "inputParameters": ["name"],
    "tasks": [
        {
            "name": TASK_NAME,
            "taskReferenceName": TASK_NAME,
            "type": Simple.type,
            "inputParameters": {"name": "${workflow.input.name}"},
        }
    ],
    "outputParameters": {"greeting": "${greet.output.greeting}"},
}
PYTHON = """\
from conductor.client.automator.task_handler import TaskHandler
from conductor.client.configuration.configuration import Configuration
from conductor.client.worker.worker_task import worker_task


@worker_task(task_definition_name="greet")
def greet(name: str) -> dict:
    return {"greeting": f"Hello, {name}!"}


if __name__ == "__main__":
    configuration = Configuration(server_api_url="SERVER")
    with TaskHandler(configuration=configuration, scan_for_annotated_workers=True) as handler:
        handler.start_processes()
        handler.join_processes()
"""
JAVASCRIPT = """\
import { OrkesClients, TaskManager } from "@io-orkes/conductor-javascript";

const clients = await OrkesClients.from({ serverUrl: "SERVER" });
const greet = {
  taskDefName: "greet",
  execute: async ({ inputData }) => ({
    status: "COMPLETED",
    outputData: { greeting: `Hello, ${inputData.name}!` },
  }),
};

new TaskManager(clients.getClient(), [greet]).startPolling();
"""
JAVA = """\
import com.netflix.conductor.client.automator.TaskRunnerConfigurer;
import com.netflix.conductor.client.http.ConductorClient;
import com.netflix.conductor.client.http.TaskClient;
import com.netflix.conductor.client.worker.Worker;
import com.netflix.conductor.common.metadata.tasks.TaskResult;
import java.util.List;

public final class Greeter {
    public static void main(String[] args) {
        ConductorClient client = ConductorClient.builder().basePath("SERVER").build();
        Worker greet = Worker.create("greet", task -> {
            TaskResult result = new TaskResult(task);
            result.addOutputData("greeting", "Hello, " + task.getInputData().get("name") + "!");
            result.setStatus(TaskResult.Status.COMPLETED);
            return result;
        });
        new TaskRunnerConfigurer.Builder(new TaskClient(client), List.of(greet)).build().init();
    }
}
"""


@dataclass(frozen=True, slots=True)
class WorkerSample:
    """A worker in one language: how its SDK is installed, its file, its code and how it is started."""

    language: str
    install: str
    file: str
    code: str
    start: str

    def code_for(self, server: str) -> str:
        """Return the code for the API at this address."""
        return self.code.replace("SERVER", server)


WORKER_SAMPLES = (
    WorkerSample("Python", "pip install conductor-python", "greeter.py", PYTHON, "python greeter.py"),
    WorkerSample(
        "JavaScript", "npm install @io-orkes/conductor-javascript", "greeter.mjs", JAVASCRIPT, "node greeter.mjs"
    ),
    WorkerSample("Java", "org.conductoross:conductor-client", "Greeter.java", JAVA, "java Greeter"),
)
