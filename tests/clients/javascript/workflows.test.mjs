// The SDK's workflow client.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ConductorWorkflow, generateSimpleTask } from "@io-orkes/conductor-javascript";
import { define, endOf, finish, simple, start, status, tasks, wait, workflows } from "./shop.mjs";

test("a workflow is built, registered and started", async () => {
  const built = new ConductorWorkflow(workflows, "built", 1).add(generateSimpleTask({ name: "cut", taskReferenceName: "cut_ref" }));
  await built.timeoutSeconds(0).ownerEmail("shop@example.com").outputParameters({ by: "${cut_ref.output.by}" }).register(true);

  const id = await built.startWorkflow({ size: 2 }, "A-1", 5);
  await finish(id, "cut_ref", { by: "hand" });

  const done = await workflows.getWorkflow(id, true);
  assert.deepEqual([done.status, done.correlationId, done.priority], ["COMPLETED", "A-1", 5]);
  assert.deepEqual(done.output, { by: "hand" });
});

test("a workflow is started by its name", async () => {
  await define("named", simple("cut"));

  const id = await workflows.startWorkflowByName("named", { size: 9 }, 1, "A-2", 3);

  const found = await workflows.getExecution(id);
  assert.deepEqual([found.input.size, found.correlationId, found.priority], [9, "A-2", 3]);
});

test("several workflows are started at once", async () => {
  await define("several", simple("cut"));

  const ids = await Promise.all(workflows.startWorkflows([{ name: "several", input: {} }, { name: "several", input: {} }]));

  assert.equal(new Set(ids).size, 2);
});

test("a workflow is started and waited for", async () => {
  await define("waited", { name: "set", taskReferenceName: "set", type: "SET_VARIABLE", inputParameters: { colour: "red" } });

  const run = await workflows.executeWorkflow({ name: "waited", version: 1, input: {} }, "waited", 1, "request-1");

  assert.equal(run.status, "COMPLETED");
  assert.equal(run.requestId, "request-1");
  assert.deepEqual(run.variables, { colour: "red" });
});

test("a workflow is paused and resumed", async () => {
  await define("paused", simple("cut"), simple("sew"));
  const id = await start("paused");

  await workflows.pause(id);
  assert.equal(await status(id), "PAUSED");
  await finish(id, "cut_ref");
  assert.deepEqual((await workflows.getWorkflow(id, true)).tasks.map((task) => task.taskDefName), ["cut"]);

  await workflows.resume(id);
  assert.equal(await status(id), "RUNNING");
  assert.deepEqual((await workflows.getWorkflow(id, true)).tasks.map((task) => task.taskDefName), ["cut", "sew"]);
});

test("a workflow is terminated for a reason, and removed", async () => {
  await define("ended", simple("cut"));
  const id = await start("ended");

  await workflows.terminate(id, "the customer left");

  const ended = await workflows.getWorkflow(id, true);
  assert.deepEqual([ended.status, ended.reasonForIncompletion], ["TERMINATED", "the customer left"]);
  await workflows.deleteWorkflow(id, false);
  await assert.rejects(workflows.getWorkflow(id, false), /no workflow|not found|No such/i);
});

test("what failed is retried", async () => {
  await define("retried", simple("stitch"));
  const id = await start("retried");
  const [first] = (await workflows.getWorkflow(id, true)).tasks;
  await workflows.updateTask(first.taskId, id, "FAILED_WITH_TERMINAL_ERROR", { broken: "needle" });
  assert.equal(await status(id), "FAILED");

  await workflows.retry(id, false);

  assert.equal(await status(id), "RUNNING");
  await finish(id, "stitch_ref");
  assert.deepEqual((await endOf(id)).tasks.map((task) => task.status), ["FAILED_WITH_TERMINAL_ERROR", "COMPLETED"]);
});

test("a task is skipped before it is reached", async () => {
  await define("skipped", simple("cut"), simple("sew"));
  const id = await start("skipped");

  await workflows.skipTasksFromWorkflow(id, "sew_ref", { taskInput: {}, taskOutput: { seams: 0 } });
  await finish(id, "cut_ref");

  const done = await workflows.getWorkflow(id, true);
  assert.equal(done.status, "COMPLETED");
  assert.deepEqual(done.tasks[1].outputData, { seams: 0 });
});

test("a waiting workflow is signalled, and tells what came of it", async () => {
  await define("signalled", wait("pay"), wait("ship"));
  const id = await start("signalled");

  const seen = await workflows.signal(id, "COMPLETED", { amount: 3 });
  assert.equal(seen.targetWorkflowId, id);
  assert.equal(seen.targetWorkflowStatus, "RUNNING");

  await workflows.signalAsync(id, "COMPLETED", { parcel: 7 });
  assert.equal((await endOf(id)).status, "COMPLETED");
});

test("a task is ended by its reference, and the workflow is the answer", async () => {
  await define("synced", simple("cut"));
  const id = await start("synced");

  const done = await workflows.updateTaskSync("cut_ref", id, "COMPLETED", { pieces: 4 });

  assert.deepEqual([done.workflowId, done.status], [id, "COMPLETED"]);
  assert.equal((await tasks.getTask(done.tasks[0].taskId)).status, "COMPLETED");
});

test("the task client ends a task by its reference, too", async () => {
  await define("reported", simple("cut"), simple("sew"));
  const id = await start("reported");

  await tasks.updateTaskResult(id, "cut_ref", "COMPLETED", { pieces: 4 });
  const done = await tasks.updateTaskSync(id, "sew_ref", "COMPLETED", { seams: 3 });

  assert.equal(done.status, "COMPLETED");
});

test("variables and state are updated from outside", async () => {
  await define("told", simple("cut"));
  const id = await start("told");

  const told = await workflows.updateVariables(id, { colour: "blue" });
  assert.deepEqual(told.variables, { colour: "blue" });

  const update = { taskReferenceName: "cut_ref", variables: { colour: "red" }, taskResult: { status: "COMPLETED", outputData: {}, workflowInstanceId: id } };
  const run = await workflows.updateState(id, update, "request-2", "", 1);
  assert.deepEqual([run.status, run.variables], ["COMPLETED", { colour: "red" }]);
});

test("workflows are found by their correlation ids", async () => {
  await define("related", simple("cut"));
  const id = await workflows.startWorkflow({ name: "related", correlationId: "B-1", input: {} });

  const found = await workflows.getByCorrelationIds({ correlationIds: ["B-1", "B-2"], workflowNames: ["related"] });

  assert.deepEqual(found["B-1"].map((one) => one.workflowId), [id]);
});

test("a workflow is tested without a run, and its result is read by its id", async () => {
  const workflowDef = await define("tried", simple("cut"));

  const tried = await workflows.testWorkflow({
    name: "tried", workflowDef, input: { size: 2 }, taskRefToMockOutput: { cut_ref: [{ status: "COMPLETED", output: { pieces: 4 } }] },
  });

  assert.deepEqual([tried.status, tried.output], ["COMPLETED", { pieces: 4 }]);
  assert.equal((await workflows.getWorkflow(tried.workflowId, true)).status, "COMPLETED");
  assert.equal((await workflows.search(0, 10, `workflowId = '${tried.workflowId}'`, "*")).totalHits, 0);
});

test("a refusal carries the server's sentence", async () => {
  await assert.rejects(start("nowhere"), /nowhere/);
  await assert.rejects(workflows.pause("nothing"), /nothing/);
});
