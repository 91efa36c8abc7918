// Read replies of the server with the models of the SDK. A value of another type than that of its field is an error.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/conductor-sdk/conductor-go/sdk/model"
)

// models creates a value of the SDK for each model of Conductor.
var models = map[string]func() interface{}{
	"Workflow":                      func() interface{} { return &model.Workflow{} },
	"WorkflowStatus":                func() interface{} { return &model.WorkflowState{} },
	"Task":                          func() interface{} { return &model.Task{} },
	"WorkflowDef":                   func() interface{} { return &model.WorkflowDef{} },
	"TaskDef":                       func() interface{} { return &model.TaskDef{} },
	"BulkResponse":                  func() interface{} { return &model.BulkResponse{} },
	"List<Workflow>":                func() interface{} { return &[]model.Workflow{} },
	"List<Task>":                    func() interface{} { return &[]model.Task{} },
	"List<TaskExecLog>":             func() interface{} { return &[]model.TaskExecLog{} },
	"List<PollData>":                func() interface{} { return &[]model.PollData{} },
	"List<WorkflowDef>":             func() interface{} { return &[]model.WorkflowDef{} },
	"List<TaskDef>":                 func() interface{} { return &[]model.TaskDef{} },
	"SearchResult<Workflow>":        func() interface{} { return &model.SearchResultWorkflow{} },
	"SearchResult<WorkflowSummary>": func() interface{} { return &model.SearchResultWorkflowSummary{} },
	"SearchResult<Task>":            func() interface{} { return &model.SearchResultTask{} },
	"SearchResult<TaskSummary>":     func() interface{} { return &model.SearchResultTaskSummary{} },
}

func main() {
	folder := os.Getenv("REPLIES")
	var manifest map[string][]string
	check(json.Unmarshal(read(folder, "manifest.json"), &manifest))
	counts, wrong := map[string]int{}, map[string]string{}
	for name, files := range manifest {
		create, isKnown := models[name]
		if !isKnown {
			wrong[name] = "the program has no model for it"
			continue
		}
		for _, file := range files {
			if err := json.Unmarshal(read(folder, file), create()); err != nil {
				wrong[file] = err.Error()
			}
			counts[name]++
		}
	}
	text, err := json.Marshal(map[string]interface{}{"counts": counts, "wrong": wrong})
	check(err)
	fmt.Println("RESULTS", string(text))
}

func read(folder, file string) []byte {
	content, err := os.ReadFile(filepath.Join(folder, file))
	check(err)
	return content
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
