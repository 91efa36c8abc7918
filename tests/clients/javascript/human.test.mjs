// The SDK's human task executor, its template client and its generated resource.

import assert from "node:assert/strict";
import { test } from "node:test";
import { humanTask } from "@io-orkes/conductor-javascript";
import { clients, define, endOf, start } from "./shop.mjs";

const human = clients.getHumanClient();
const templates = clients.getTemplateClient();
const jsonSchema = { type: "object", required: ["approved"], properties: { approved: { type: "boolean" } } };
const templateUI = { type: "VerticalLayout", elements: [{ type: "Control", scope: "#/properties/approved" }] };

async function waiting(name, options) {
  await define(name, humanTask("approve", options));
  const id = await start(name);
  const [found] = await human.pollSearch({ workflowIds: [id] });
  return [id, found];
}

test("a template is registered, as a new version too, and read", async () => {
  const saved = await templates.registerTemplate({ name: "js-form", version: 1, jsonSchema, templateUI });
  assert.deepEqual([saved.name, saved.version], ["js-form", 1]);
  const next = await templates.registerTemplate({ name: "js-form", version: 1, jsonSchema, templateUI }, true);
  assert.equal(next.version, 2);

  assert.deepEqual((await human.getTemplateByNameVersion("js-form", 2)).templateUI, templateUI);
  assert.equal((await human.getTemplateById("js-form")).version, 1);
  await assert.rejects(human.getTemplateByNameVersion("js-form", 7), /No such form template/);
});

test("a task is found by its filters, claimed for an external user with its template, and released", async () => {
  await templates.registerTemplate({ name: "js-claim", version: 1, jsonSchema, templateUI });
  const assignee = { userType: "EXTERNAL_USER", user: "bob" };
  const [id, found] = await waiting("js-claimed", { displayName: "Approve", formTemplate: "js-claim", assignee });
  assert.deepEqual([found.state, found.workflowId, found.displayName, found.assignee], ["ASSIGNED", id, "Approve", assignee]);

  const [same] = await human.getTasksByFilter("ASSIGNED", "bob", "EXTERNAL_USER", undefined, "approve");
  assert.equal(same.taskId, found.taskId);
  await assert.rejects(human.claimTaskAsExternalUser(found.taskId, "eve"), /assigned to bob/);
  const claimed = await human.claimTaskAsExternalUser(found.taskId, "bob", { withTemplate: true });
  assert.deepEqual([claimed.state, claimed.claimant], ["IN_PROGRESS", assignee]);
  assert.deepEqual(claimed.humanTaskDef.fullTemplate.jsonSchema, jsonSchema);
  assert.equal((await human.getTasksByFilter("IN_PROGRESS", undefined, undefined, "EXTERNAL_USER:bob"))[0].taskId, found.taskId);

  await human.releaseTask(found.taskId);
  assert.equal((await human.getTaskById(found.taskId)).state, "ASSIGNED");
  const over = await human.claimTaskAsExternalUser(found.taskId, "eve", { overrideAssignment: true });
  assert.equal(over.claimant.user, "eve");
});

test("an output is saved and completed, and the workflow goes on", async () => {
  await templates.registerTemplate({ name: "js-done", version: 1, jsonSchema, templateUI });
  const [id, found] = await waiting("js-completed", { formTemplate: "js-done", formVersion: 1 });
  const claimed = await human.claimTaskAsConductorUser(found.taskId);
  assert.equal(claimed.claimant.userType, "CONDUCTOR_USER");

  await human.updateTaskOutput(found.taskId, { note: { text: "half" } });
  await assert.rejects(human.completeTask(found.taskId, { note: {} }), /approved/);
  await human.completeTask(found.taskId, { approved: true });

  const done = await human.getTaskById(found.taskId);
  assert.deepEqual([done.state, done.output], ["COMPLETED", { note: { text: "half" }, approved: true }]);
  assert.equal((await endOf(id)).status, "COMPLETED");
  await assert.rejects(human.completeTask(found.taskId), /COMPLETED/);
});

test("a task that is not there is not found", async () => {
  await assert.rejects(human.getTaskById("none"), /not found/i);
});
