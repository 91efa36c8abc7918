// Register a workflow of two steps, serve it with workers of the SDK, and see that it completes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/conductor-sdk/conductor-go/sdk/client"
	"github.com/conductor-sdk/conductor-go/sdk/model"
	"github.com/conductor-sdk/conductor-go/sdk/settings"
	"github.com/conductor-sdk/conductor-go/sdk/worker"
	"github.com/conductor-sdk/conductor-go/sdk/workflow"
	"github.com/conductor-sdk/conductor-go/sdk/workflow/executor"
)

const longest = 20 * time.Second

func main() {
	found := map[string]interface{}{}
	api := client.NewAPIClient(nil, settings.NewHttpSettings(os.Getenv("CONDUCTOR_SERVER_URL")))
	workflows := executor.NewWorkflowExecutor(api)
	register(api, workflows)
	workers := worker.NewTaskRunnerWithApiClient(api)
	check(workers.StartWorker("measure", measure, 2, 20*time.Millisecond))
	check(workers.StartWorker("stitch", stitch, 2, 20*time.Millisecond))
	check(workers.StartWorker("tear", tear, 1, 20*time.Millisecond))

	id, err := workflows.StartWorkflow(&model.StartWorkflowRequest{
		Name: "suit", Version: 1, CorrelationId: "order-7", Input: map[string]interface{}{"size": 2},
	})
	check(err)
	suit := wait(workflows, id)
	found["suit"] = []interface{}{suit.Status, suit.CorrelationId, suit.Tasks[0].OutputData["pieces"], suit.Output["seams"]}
	found["types"] = []string{suit.Tasks[0].TaskType, suit.Tasks[1].TaskType}

	id, err = workflows.StartWorkflow(&model.StartWorkflowRequest{Name: "rag", Version: 1})
	check(err)
	rag := wait(workflows, id)
	found["rag"] = []interface{}{rag.Status, rag.Tasks[0].Status, rag.Tasks[0].ReasonForIncompletion}

	variables := client.NewEnvironmentClient(api)
	_, err = variables.CreateOrUpdateEnvVariable(context.Background(), "eu west", "REGION")
	check(err)
	value, _, err := variables.Get(context.Background(), "REGION")
	check(err)
	found["variable"] = value

	id, err = workflows.StartWorkflow(&model.StartWorkflowRequest{Name: "letter", Version: 1})
	check(err)
	check(workflows.UpdateTaskByRefName("reply", id, model.CompletedTask, map[string]interface{}{"text": "yes"}))
	letter := wait(workflows, id)
	found["letter"] = []interface{}{letter.Status, letter.Tasks[0].OutputData["text"]}

	_, err = workflows.StartWorkflow(&model.StartWorkflowRequest{Name: "nothing", Version: 1})
	var refused client.GenericSwaggerError
	found["unknown"] = []interface{}{errors.As(err, &refused), refused.StatusCode() == http.StatusNotFound}

	text, err := json.Marshal(found)
	check(err)
	fmt.Println("RESULTS", string(text))
}

func register(api *client.APIClient, workflows *executor.WorkflowExecutor) {
	metadata := client.MetadataResourceApiService{APIClient: api}
	var tasks []model.TaskDef
	for _, name := range []string{"measure", "stitch", "tear"} {
		tasks = append(tasks, model.TaskDef{Name: name, OwnerEmail: "shop@example.com", RetryCount: 0, TimeoutSeconds: 60, ResponseTimeoutSeconds: 30})
	}
	_, err := metadata.RegisterTaskDef(context.Background(), tasks)
	check(err)
	size := "${workflow.input.size}"
	suit := workflow.NewConductorWorkflow(workflows).Name("suit").Version(1).OwnerEmail("shop@example.com").
		Add(workflow.NewSimpleTask("measure", "measure").Input("size", size)).
		Add(workflow.NewSimpleTask("stitch", "stitch").Input("size", size)).
		OutputParameters(map[string]interface{}{"seams": "${stitch.output.seams}"})
	check(suit.Register(true))
	check(workflow.NewConductorWorkflow(workflows).Name("rag").Version(1).OwnerEmail("shop@example.com").
		Add(workflow.NewSimpleTask("tear", "tear")).Register(true))
	check(workflow.NewConductorWorkflow(workflows).Name("letter").Version(1).OwnerEmail("shop@example.com").
		Add(workflow.NewHumanTask("reply")).Register(true))
}

func measure(task *model.Task) (interface{}, error) {
	return map[string]interface{}{"pieces": task.InputData["size"].(float64) * 2}, nil
}

func stitch(task *model.Task) (interface{}, error) {
	result := model.NewTaskResultFromTask(task)
	result.Status = model.CompletedTask
	result.OutputData = map[string]interface{}{"seams": 3}
	result.Logs = []model.TaskExecLog{{Log: "stitched"}}
	return result, nil
}

func tear(task *model.Task) (interface{}, error) {
	return nil, model.NewNonRetryableError(errors.New("the cloth is torn"))
}

func wait(workflows *executor.WorkflowExecutor, id string) *model.Workflow {
	for end := time.Now().Add(longest); ; time.Sleep(50 * time.Millisecond) {
		run, err := workflows.GetWorkflow(id, true)
		check(err)
		if run.Status != model.RunningWorkflow || time.Now().After(end) {
			return run
		}
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
