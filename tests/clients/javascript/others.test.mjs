// The methods that no other script calls, and those that belong to Orkes' own products.

import assert from "node:assert/strict";
import { test } from "node:test";
import { TaskHandler, noopLogger, worker } from "@io-orkes/conductor-javascript";
import { clients, define, endOf, finish, metadata, simple, start, status, workflows } from "./shop.mjs";

const events = clients.getEventClient();
const services = clients.getServiceRegistryClient();
const NOT_FOUND = (error) => /404|No endpoint|not found/i.test(`${error} ${JSON.stringify(error)} ${error.cause}`);
const ENTRY = { name: "s", type: "HTTP", serviceURI: "http://localhost" };

test("a group is shown by its id", async () => {
  const people = clients.getAuthorizationClient();
  await people.upsertGroup("cutters", { description: "those who cut", roles: ["USER"] });

  assert.equal((await people.getGroup("cutters")).description, "those who cut");
  await people.deleteGroup("cutters");
});

test("several tags of an event handler are removed at once", async () => {
  const action = { action: "start_workflow", start_workflow: { name: "labeled" } };
  await events.addEventHandler({ name: "labeled", event: "shop:labeled", actions: [action], active: true });
  const tags = ["a", "b"].map((value) => ({ key: "team", value, type: "METADATA" }));
  await events.putTagForEventHandler("labeled", tags);

  await events.deleteTagsForEventHandler("labeled", tags);

  assert.deepEqual(await events.getTagsForEventHandler("labeled"), []);
});

test("a workflow goes back to its first completed task of a type", async () => {
  await define("back", simple("cut"), simple("sew"));
  await metadata.registerTask({ name: "cut", retryCount: 0, timeoutSeconds: 60, responseTimeoutSeconds: 30 });
  const id = await start("back");
  for (const ref of ["cut_ref", "sew_ref"]) await finish(id, ref);
  assert.equal((await endOf(id)).status, "COMPLETED");

  await workflows.goBackToFirstTaskMatchingType(id, "cut");

  assert.equal(await status(id), "RUNNING");
});

test("the calls that agents use for schedules work for workflows", async () => {
  await define("dawn", simple("cut"));
  const schedules = clients.getSchedulerClient();
  await schedules.saveSchedule({ name: "at-dawn-2", cronExpression: "0 0 6 * * *", startWorkflowRequest: { name: "dawn", version: 1 } });

  const found = await schedules.get("at-dawn-2", "dawn");
  assert.equal(found.cron, "0 0 6 * * *");
  assert.deepEqual((await schedules.listForAgent("dawn")).map((one) => one.name), [found.name]);
  await schedules.pause("at-dawn-2", "holidays");
  assert.equal((await schedules.getSchedule("at-dawn-2")).paused, true);
  await schedules.resume("at-dawn-2");
  assert.equal((await schedules.previewNext("0 0 6 * * *", { n: 2 })).length, 2);
  const run = await schedules.runNow(found);
  assert.equal((await workflows.getWorkflow(run, true)).workflowName, "dawn");
  assert.equal(await clients.getAgentWorkflowClient().getStatus(run), "RUNNING");
  await schedules.reconcile("dawn", []);
  assert.deepEqual(await schedules.listForAgent("dawn"), []);
  await schedules.save({ name: "noon", cron: "0 0 12 * * *", input: {} }, "dawn");
  const [saved] = await schedules.listForAgent("dawn");
  await schedules.delete(saved.name);
  assert.deepEqual(await schedules.listForAgent("dawn"), []);
});

test("a task handler tells how its workers are", async () => {
  worker({ taskDefName: "watched" })(async () => ({ status: "COMPLETED", outputData: {} }), {});
  const handler = new TaskHandler({ client: clients.getClient(), scanForDecorated: true, logger: noopLogger });
  await handler.startWorkers();
  try {
    assert.equal(handler.isHealthy(), true);
    assert.ok(handler.getWorkerStatus());
    handler.printSummary();
  } finally {
    await handler.stopWorkers();
  }
});

const CALLS = {
  getRegisteredServices: () => services.getRegisteredServices(),
  getService: () => services.getService("s"),
  addOrUpdateService: () => services.addOrUpdateService(ENTRY),
  removeService: () => services.removeService("s"),
  openCircuitBreaker: () => services.openCircuitBreaker("s"),
  closeCircuitBreaker: () => services.closeCircuitBreaker("s"),
  getCircuitBreakerStatus: () => services.getCircuitBreakerStatus("s"),
  addOrUpdateServiceMethod: () => services.addOrUpdateServiceMethod("s", { methodName: "m" }),
  removeMethod: () => services.removeMethod("s", "s", "m", "GET"),
  getProtoData: () => services.getProtoData("s", "f"),
  setProtoData: () => services.setProtoData("s", "f", new Blob(["x"])),
  deleteProto: () => services.deleteProto("s", "f"),
  getAllProtos: () => services.getAllProtos("s"),
  discover: () => services.discover("s"),
  getQueueConfig: () => events.getQueueConfig("kafka", "orders"),
  putQueueConfig: () => events.putQueueConfig("kafka", "orders", "{}"),
  deleteQueueConfig: () => events.deleteQueueConfig("kafka", "orders"),
  getAllQueueConfigs: () => events.getAllQueueConfigs(),
  testConnectivity: () => events.testConnectivity({ queueType: "kafka", queueName: "orders" }),
};

for (const [name, call] of Object.entries(CALLS)) {
  test(`${name} is not supported, and refused with 404`, async () => {
    await assert.rejects(call(), NOT_FOUND);
  });
}
