// The SDK's client of events.

import assert from "node:assert/strict";
import { test } from "node:test";
import { clients, define, eventually, simple } from "./shop.mjs";

const events = clients.getEventClient();
const START = { action: "start_workflow", start_workflow: { name: "listened", input: { who: "${who}" } } };

test("an event handler is kept, changed, found and forgotten", async () => {
  await events.addEventHandler({ name: "kept", event: "shop:kept", actions: [START], active: true });
  await events.updateEventHandler({ name: "kept", event: "shop:kept", actions: [START], active: false });

  assert.deepEqual(await events.getEventHandlersForEvent("shop:kept", true), []);
  assert.equal((await events.getEventHandlerByName("kept")).active, false);
  assert.ok((await events.getAllEventHandlers()).some((one) => one.name === "kept"));
  await events.removeEventHandler("kept");
  await assert.rejects(events.getEventHandlerByName("kept"));
});

test("an event is heard, and what became of it is told", async () => {
  await define("listened", simple("cut"));
  await events.addEventHandlers([{ name: "hears", event: "shop:told", actions: [START], active: true }]);

  await events.handleIncomingEvent({ event: "shop:told", id: "m-1", who: "Ann" });

  const [done] = await eventually(async () => {
    const found = await events.getEventExecutions("hears");
    return found.length && found[0].status === "COMPLETED" && found;
  });
  assert.deepEqual([done.messageId, done.action], ["m-1", "start_workflow"]);
  const [message] = await events.getEventMessages("shop:told", 0);
  assert.deepEqual([message.id, message.status, message.eventExecutions.length], ["m-1", "HANDLED", 1]);
  const numbers = (await events.getEventHandlersWithStats(0)).results.find((one) => one.name === "hears");
  assert.deepEqual([numbers.numberOfMessages, numbers.numberOfActions], [1, 1]);
  assert.ok((await events.getAllActiveEventHandlers()).results.some((one) => one.name === "hears"));
});

test("an event handler bears tags", async () => {
  await events.addEventHandler({ name: "tagged", event: "shop:tagged", actions: [START], active: true });
  const [a, b] = ["a", "b"].map((value) => ({ key: "team", value, type: "METADATA" }));

  await events.putTagForEventHandler("tagged", [a, b]);
  await events.deleteTagForEventHandler("tagged", b);

  assert.deepEqual(await events.getTagsForEventHandler("tagged"), [a]);
});
