// The SDK's clients of definitions, schedules, secrets and schemas.

import assert from "node:assert/strict";
import { test } from "node:test";
import { clients, define, metadata, simple } from "./shop.mjs";

const schedules = clients.getSchedulerClient();
const secrets = clients.getSecretClient();
const schemas = clients.getSchemaClient();

test("task definitions are registered, changed, listed and forgotten", async () => {
  await metadata.registerTask({ name: "cut", retryCount: 2, timeoutSeconds: 60, responseTimeoutSeconds: 30 });
  await metadata.registerTasks([{ name: "sew", retryCount: 1, timeoutSeconds: 60, responseTimeoutSeconds: 30 }]);
  await metadata.updateTask({ name: "cut", retryCount: 5, timeoutSeconds: 60, responseTimeoutSeconds: 30 });

  assert.equal((await metadata.getTask("cut")).retryCount, 5);
  assert.deepEqual((await metadata.getAllTaskDefs()).map((one) => one.name).sort(), ["cut", "sew"]);
  await metadata.unregisterTask("sew");
  await assert.rejects(metadata.getTask("sew"));
});

test("workflow definitions are registered, read, listed and forgotten", async () => {
  const definition = await define("order", simple("cut"));
  await metadata.registerWorkflowDef({ ...definition, description: "by the metadata client" }, true);

  assert.equal((await metadata.getWorkflowDef("order", 1)).description, "by the metadata client");
  assert.ok((await metadata.getAllWorkflowDefs()).some((one) => one.name === "order"));
  await assert.rejects(metadata.registerWorkflowDef(definition, false), /order/);
  await metadata.unregisterWorkflow("order", 1);
  await assert.rejects(metadata.getWorkflowDef("order", 1));
});

test("a schedule is saved, shown, paused, resumed and forgotten", async () => {
  await define("nightly", simple("cut"));
  const request = { name: "at-night", cronExpression: "0 0 3 * * *", startWorkflowRequest: { name: "nightly", version: 1 } };
  await schedules.saveSchedule(request);

  assert.equal((await schedules.getSchedule("at-night")).cronExpression, request.cronExpression);
  assert.deepEqual((await schedules.getAllSchedules("nightly")).map((one) => one.name), ["at-night"]);
  await schedules.pauseSchedule("at-night", "holidays");
  assert.equal((await schedules.getSchedule("at-night")).paused, true);
  await schedules.resumeSchedule("at-night");
  assert.equal((await schedules.getSchedule("at-night")).paused, false);
  await schedules.deleteSchedule("at-night");
  assert.deepEqual(await schedules.getAllSchedules("nightly"), []);
});

test("the moments of a cron expression are told, and what schedules came to is searched", async () => {
  const moments = await schedules.getNextFewSchedules("0 0 3 * * *", undefined, undefined, 3);

  assert.equal(moments.length, 3);
  assert.equal(moments[1] - moments[0], 24 * 60 * 60 * 1000);
  assert.equal((await schedules.search(0, 10)).totalHits, 0);
});

test("a schedule has tags", async () => {
  await define("weekly", simple("cut"));
  await schedules.saveSchedule({ name: "at-dawn", cronExpression: "0 0 6 * * MON", startWorkflowRequest: { name: "weekly" } });
  const tag = { key: "team", value: "tailors", type: "METADATA" };

  await schedules.setSchedulerTags([tag], "at-dawn");
  assert.deepEqual((await schedules.getSchedulerTags("at-dawn")).map((one) => [one.key, one.value]), [["team", "tailors"]]);
  await schedules.deleteSchedulerTags([tag], "at-dawn");
  assert.deepEqual(await schedules.getSchedulerTags("at-dawn"), []);
});

test("all schedules are stopped and let go", async () => {
  await schedules.pauseAllSchedules();
  await schedules.resumeAllSchedules();
  await schedules.requeueAllExecutionRecords();
});

test("a secret is kept, read, listed, tagged and forgotten", async () => {
  await secrets.putSecret("till", 'say "open"');

  assert.equal(await secrets.getSecret("till"), 'say "open"');
  assert.equal(await secrets.secretExists("till"), true);
  assert.deepEqual(await secrets.listAllSecretNames(), ["till"]);
  assert.deepEqual(await secrets.listSecretsThatUserCanGrantAccessTo(), ["till"]);
  await secrets.setSecretTags([{ key: "team", value: "tailors", type: "METADATA" }], "till");
  assert.deepEqual((await secrets.getSecretTags("till")).map((one) => one.value), ["tailors"]);
  await secrets.deleteSecretTags([{ key: "team", value: "tailors", type: "METADATA" }], "till");
  await secrets.deleteSecret("till");
  assert.deepEqual(await secrets.listAllSecretNames(), []);
});

test("a schema is kept under a name and versions, read, listed and forgotten", async () => {
  const schema = (version) => ({ name: "size", version, type: "JSON", data: { type: "object", required: ["size"] } });
  await schemas.registerSchema([schema(1), schema(2)]);

  assert.deepEqual((await schemas.getSchema("size", 1)).data.required, ["size"]);
  assert.equal((await schemas.getSchemaByName("size")).version, 2);
  assert.deepEqual((await schemas.getAllSchemas()).map((one) => one.version).sort(), [1, 2]);
  await schemas.deleteSchema("size", 2);
  assert.equal((await schemas.getSchemaByName("size")).version, 1);
  await schemas.deleteSchemaByName("size");
  assert.deepEqual(await schemas.getAllSchemas(), []);
});
