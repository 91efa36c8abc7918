"""What a new user begins with: a first run, a workflow with a task for a worker, and that worker in four languages.

In the code of the workers, `SERVER` stands for the address of the API.
"""

from dataclasses import dataclass
from typing import Any

from ..core.step_types.base import Simple
from ..core.step_types.forks import ForkJoin, Join
from ..core.step_types.waiting import Wait
from ..core.step_types.worker_tasks import Inline, JsonJqTransform

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
FIRST_RUN: dict[str, Any] = {
    "name": "first_run",
    "description": "Shows steps that the server executes itself, so that the run needs no worker.",
    "version": 1,
    "schemaVersion": 2,
    "ownerEmail": "team@example.com",
    "timeoutSeconds": 3600,
    "timeoutPolicy": "TIME_OUT_WF",
    "inputParameters": ["name"],
    "tasks": [
        {
            "name": "compose",
            "taskReferenceName": "compose",
            "type": Inline.type,
            "inputParameters": {
                "name": "${workflow.input.name}",
                "evaluatorType": "javascript",
                "expression": "({ text: 'Hello, ' + $.name + '!' })",
            },
        },
        {
            "name": "both",
            "taskReferenceName": "both",
            "type": ForkJoin.type,
            "forkTasks": [
                [
                    {
                        "name": "pause",
                        "taskReferenceName": "pause",
                        "type": Wait.type,
                        "inputParameters": {"duration": "2 seconds"},
                    }
                ],
                [
                    {
                        "name": "count_letters",
                        "taskReferenceName": "count_letters",
                        "type": JsonJqTransform.type,
                        "inputParameters": {
                            "text": "${compose.output.result.text}",
                            "queryExpression": ".text | length",
                        },
                    }
                ],
            ],
        },
        {
            "name": "joined",
            "taskReferenceName": "joined",
            "type": Join.type,
            "joinOn": ["pause", "count_letters"],
        },
    ],
    "outputParameters": {"greeting": "${compose.output.result.text}", "letters": "${count_letters.output.result}"},
}
"""A workflow that completes without a worker in two seconds."""
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
//DEPS org.conductoross:conductor-client:6.0.0

public final class Greeter {
    public static void main(String[] args) throws InterruptedException {
        ConductorClient client = ConductorClient.builder().basePath("SERVER").build();
        Worker greet = Worker.create("greet", task -> {
            TaskResult result = new TaskResult(task);
            result.addOutputData("greeting", "Hello, " + task.getInputData().get("name") + "!");
            result.setStatus(TaskResult.Status.COMPLETED);
            return result;
        });
        new TaskRunnerConfigurer.Builder(new TaskClient(client), List.of(greet)).build().init();
        Thread.currentThread().join();
    }
}
"""
GO = """\
package main

import (
	"fmt"
	"time"

	"github.com/conductor-sdk/conductor-go/sdk/client"
	"github.com/conductor-sdk/conductor-go/sdk/model"
	"github.com/conductor-sdk/conductor-go/sdk/settings"
	"github.com/conductor-sdk/conductor-go/sdk/worker"
)

func greet(task *model.Task) (interface{}, error) {
	greeting := fmt.Sprintf("Hello, %v!", task.InputData["name"])
	return map[string]interface{}{"greeting": greeting}, nil
}

func main() {
	api := client.NewAPIClient(nil, settings.NewHttpSettings("SERVER"))
	workers := worker.NewTaskRunnerWithApiClient(api)
	if err := workers.StartWorker("greet", greet, 1, 100*time.Millisecond); err != nil {
		panic(err)
	}
	workers.WaitWorkers()
}
"""


@dataclass(frozen=True, slots=True)
class WorkerSample:
    """A worker in one language: its file, its code, and the commands that install its SDK and start it."""

    language: str
    file: str
    code: str
    commands: str

    def code_for(self, server: str) -> str:
        """Return the code for the API at this address."""
        return self.code.replace("SERVER", server)


WORKER_SAMPLES = (
    WorkerSample(
        "Python",
        "greeter.py",
        PYTHON,
        "python3 -m venv greeter && greeter/bin/pip install conductor-python\ngreeter/bin/python greeter.py",
    ),
    WorkerSample(
        "JavaScript",
        "greeter.mjs",
        JAVASCRIPT,
        "npm install @io-orkes/conductor-javascript\nnode greeter.mjs",
    ),
    WorkerSample("Java", "Greeter.java", JAVA, "jbang Greeter.java"),
    WorkerSample(
        "Go",
        "greeter.go",
        GO,
        "go mod init greeter\ngo get github.com/conductor-sdk/conductor-go\ngo mod tidy\ngo run greeter.go",
    ),
)
