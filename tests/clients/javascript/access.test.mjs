// The SDK's clients of tags, of who may do what, and of events.

import assert from "node:assert/strict";
import { test } from "node:test";
import { clients, define, eventually, metadata, simple, wait, workflows } from "./shop.mjs";

const applications = clients.getApplicationClient();
const people = clients.getAuthorizationClient();
const events = clients.getEventClient();
const team = { key: "team", value: "tailors", type: "METADATA" };
const floor = { key: "floor", value: "2", type: "METADATA" };
const pairs = (tags) => tags.map((tag) => `${tag.key}=${tag.value}`).sort();

test("workflow definitions are tagged", async () => {
  await define("tagged", simple("cut"));

  await metadata.addWorkflowTag(team, "tagged");
  assert.deepEqual(pairs(await metadata.getWorkflowTags("tagged")), ["team=tailors"]);
  await metadata.setWorkflowTags([team, floor], "tagged");
  await metadata.deleteWorkflowTag(team, "tagged");
  assert.deepEqual(pairs(await metadata.getWorkflowTags("tagged")), ["floor=2"]);
});

test("task definitions are tagged", async () => {
  await metadata.registerTask({ name: "cut", retryCount: 0, timeoutSeconds: 60, responseTimeoutSeconds: 30 });

  await metadata.addTaskTag(team, "cut");
  await metadata.setTaskTags([team, floor], "cut");
  await metadata.deleteTaskTag(floor, "cut");
  assert.deepEqual(pairs(await metadata.getTaskTags("cut")), ["team=tailors"]);
});

test("an application has keys, roles and tags", async () => {
  const { id } = await applications.createApplication("till");
  assert.deepEqual((await applications.getAllApplications()).map((one) => one.name), ["till"]);
  assert.equal((await applications.updateApplication(id, "till 2")).name, "till 2");
  assert.equal((await applications.getApplication(id)).name, "till 2");

  const key = await applications.createAccessKey(id);
  assert.ok(key.secret);
  assert.deepEqual((await applications.getAccessKeys(id)).map((one) => one.id), [key.id]);
  assert.equal((await applications.getAppByAccessKeyId(key.id)).id, id);
  assert.equal((await applications.toggleAccessKeyStatus(id, key.id)).status, "INACTIVE");
  await applications.deleteAccessKey(id, key.id);
  assert.deepEqual(await applications.getAccessKeys(id), []);

  await applications.addApplicationRole(id, "WORKER");
  await applications.removeRoleFromApplicationUser(id, "WORKER");
  await applications.addApplicationTags(id, [team]);
  await applications.addApplicationTag(id, floor);
  assert.deepEqual(pairs(await applications.getApplicationTags(id)), ["floor=2", "team=tailors"]);
  await applications.deleteApplicationTag(id, floor);
  await applications.deleteApplicationTags(id, [team]);
  assert.deepEqual(await applications.getApplicationTags(id), []);
  await applications.deleteApplication(id);
  assert.deepEqual(await applications.getAllApplications(), []);
});

test("users and groups are kept, and granted what they may", async () => {
  await people.upsertUser("ann@example.com", { name: "Ann", roles: ["USER"] });
  await people.upsertGroup("tailors", { description: "those who cut", roles: ["USER"] });
  assert.equal((await people.getUser("ann@example.com")).name, "Ann");
  assert.deepEqual((await people.listUsers()).map((one) => one.id), ["ann@example.com"]);
  assert.deepEqual((await people.listGroups()).map((one) => one.id), ["tailors"]);

  await people.addUserToGroup("tailors", "ann@example.com");
  assert.deepEqual((await people.getUsersInGroup("tailors")).map((one) => one.id), ["ann@example.com"]);
  const grant = { subject: { type: "GROUP", id: "tailors" }, target: { type: "WORKFLOW_DEF", id: "order" }, access: ["READ", "EXECUTE"] };
  await people.grantPermissions(grant);
  assert.deepEqual(Object.keys(await people.getPermissions("WORKFLOW_DEF", "order")).sort(), ["EXECUTE", "READ"]);
  assert.equal((await people.getGrantedPermissionsForGroup("tailors")).grantedAccess.length, 1);
  assert.ok((await people.getGrantedPermissionsForUser("ann@example.com")).grantedAccess);
  assert.ok(await people.checkPermissions("ann@example.com", "WORKFLOW_DEF", "order"));
  await people.removePermissions(grant);

  await people.removeUserFromGroup("tailors", "ann@example.com");
  await people.addUsersToGroup("tailors", ["ann@example.com"]);
  await people.removeUsersFromGroup("tailors", ["ann@example.com"]);
  await people.deleteGroup("tailors");
  await people.deleteUser("ann@example.com");
  assert.deepEqual(await people.listUsers(), []);
});

test("an event handler is kept, changed, found and forgotten", async () => {
  await define("mended", simple("mend"));
  const action = { action: "start_workflow", start_workflow: { name: "mended", version: 1, input: { size: "${size}" } } };
  const handler = { name: "torn", event: "conductor:shop:torn", active: true, actions: [action] };
  await events.addEventHandler(handler);

  assert.equal((await events.getEventHandlerByName("torn")).event, handler.event);
  assert.deepEqual((await events.getAllEventHandlers()).map((one) => one.name), ["torn"]);
  await events.updateEventHandler({ ...handler, active: false });
  assert.deepEqual(await events.getEventHandlersForEvent(handler.event, true), []);
  assert.deepEqual((await events.getEventHandlersForEvent(handler.event, false)).map((one) => one.name), ["torn"]);
  await events.removeEventHandler("torn");
  assert.deepEqual(await events.getAllEventHandlers(), []);
});

test("an event that comes in starts what its handler says", async () => {
  await define("heard", wait("stay"));
  const action = { action: "start_workflow", start_workflow: { name: "heard", version: 1, correlationId: "E-1", input: {} } };
  await events.addEventHandlers([{ name: "hears", event: "bell", active: true, actions: [action] }]);

  await events.handleIncomingEvent({ event: "bell", id: "1" });

  const batch = { correlationIds: ["E-1"], workflowNames: ["heard"] };
  const found = await eventually(async () => (await workflows.getByCorrelationIds(batch))["E-1"]?.[0]);
  assert.equal(found.status, "RUNNING");
});
