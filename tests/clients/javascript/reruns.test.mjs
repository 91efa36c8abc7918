// Workflows that go on from somewhere else, and how they are found.

import assert from "node:assert/strict";
import { test } from "node:test";
import { define, endOf, finish, metadata, simple, start, status, tasks, workflows } from "./shop.mjs";

const referencesOf = async (id) => (await workflows.getWorkflow(id, true)).tasks.map((task) => [task.referenceTaskName, task.status]);

async function done(name) {
  const id = await start(name);
  await finish(id, "cut_ref", { pieces: 4 });
  await finish(id, "sew_ref");
  await endOf(id);
  return id;
}

test("a workflow is restarted by what its definition says now", async () => {
  await define("restarted", simple("cut"), simple("sew"));
  const id = await done("restarted");
  await define("restarted", simple("iron"));

  await workflows.restart(id, true);

  assert.deepEqual(await referencesOf(id), [["iron_ref", "SCHEDULED"]]);
});

test("a workflow is rerun from one of its tasks with another input", async () => {
  await define("rerun", simple("cut"), simple("sew"));
  const id = await done("rerun");
  const sew = (await workflows.getWorkflow(id, true)).tasks[1];

  assert.equal(await workflows.reRun(id, { reRunFromTaskId: sew.taskId, taskInput: { thread: "red" } }), id);

  assert.deepEqual(await referencesOf(id), [["cut_ref", "COMPLETED"], ["sew_ref", "SCHEDULED"]]);
  assert.deepEqual((await workflows.getWorkflow(id, true)).tasks[1].inputData, { thread: "red" });
});

test("a workflow goes back to a task that is looked for", async () => {
  await define("back", simple("cut"), simple("sew"));
  const id = await done("back");

  await workflows.goBackToTask(id, (task) => task.referenceTaskName === "cut_ref");

  assert.deepEqual(await referencesOf(id), [["cut_ref", "SCHEDULED"]]);
  assert.equal(await status(id), "RUNNING");
});

test("workflows and tasks are searched", async () => {
  await define("searched", simple("cut"));
  const id = await workflows.startWorkflow({ name: "searched", correlationId: "S-1", input: {} });

  const found = await workflows.search(0, 10, "workflowType = searched AND correlationId = 'S-1'", "*", "startTime:DESC");
  assert.deepEqual(found.results.map((one) => [one.workflowId, one.status]), [[id, "RUNNING"]]);
  const steps = await tasks.search(0, 10, "startTime:DESC", "*", `workflowId = ${id}`);
  assert.deepEqual(steps.results.map((one) => [one.workflowId, one.taskDefName]), [[id, "cut"]]);
});

test("a workflow's rate limit is set, told and taken away", async () => {
  await define("limited", simple("cut"));

  await metadata.setWorkflowRateLimit({ rateLimitKey: "limited", concurrentExecLimit: 1 }, "limited");
  const { rateLimitKey, concurrentExecLimit } = await metadata.getWorkflowRateLimit("limited");
  assert.deepEqual([rateLimitKey, concurrentExecLimit], ["limited", 1]);

  await metadata.removeWorkflowRateLimit("limited");
  assert.equal(await metadata.getWorkflowRateLimit("limited"), undefined);
});
