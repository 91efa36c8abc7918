// Every builder of the SDK: what it writes is registered and run, with the end that the compatibility page says.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import * as sdk from "@io-orkes/conductor-javascript";
import { clients, endOf, eventually, finish, metadata, workflows } from "./shop.mjs";

const PAST = "2020-01-01 00:00";
const pages = createServer((_, reply) => reply.writeHead(200, { "content-type": "application/json" }).end('{"n":1}'));
before(() => new Promise((go) => pages.listen(0, "127.0.0.1", go)));
after(() => pages.close());
const page = () => `http://127.0.0.1:${pages.address().port}/`;
const echo = (ref, value) => sdk.generateInlineTask({ name: ref, taskReferenceName: ref, inputParameters: { evaluatorType: "javascript", expression: "$.value", value } });
const one = (ref = "n") => sdk.inlineTask(ref, "1");
const child = sdk.workflow("builders_child", [echo("e", 4)]);
const named = (ref) => ({ name: ref, taskReferenceName: ref });

/** Steps, and how their run ends: `output` or a `reason`; `reports` are completed by the test, `waitsFor` stays in its queue. */
const CASES = {
  callMcpToolTask: () => ({ steps: [sdk.callMcpToolTask("s", page(), "price", {})], reason: "MCP" }),
  conductorEventTask: () => ({ steps: [sdk.conductorEventTask("s", "built")], output: { sink: "conductor:built" } }),
  doWhileTask: () => ({ steps: [sdk.doWhileTask("s", "$.s.iteration < 3", [one()]), echo("count", "${s.output.iteration}")], output: { result: 3 } }),
  dynamicForkTask: () => ({
    steps: [sdk.dynamicForkTask("s", [{ ...named("x"), type: "INLINE" }], { x: { expression: "1" } }), sdk.joinTask("j", [])],
    output: { x: { result: 1 } },
  }),
  dynamicTask: () => ({ steps: [sdk.dynamicTask("s", "built_worker")], reports: "s", output: { said: 1 } }),
  eventTask: () => ({ steps: [sdk.eventTask("s", "conductor", "built")], output: { sink: "conductor:built" } }),
  forkTask: () => ({ steps: [sdk.forkTask("s", [one("a"), one("b")]), sdk.joinTask("j", ["b"]), echo("b_of_join", "${j.output.b.result}")], output: { result: 1 } }),
  forkTaskJoin: () => ({ steps: [...sdk.forkTaskJoin("s", [one("a")]), echo("after", "${a.output.result}")], output: { result: 1 } }),
  generateAudioTask: () => ({ steps: [sdk.generateAudioTask("s", "openai", "tts-1", { text: "hello" })], waitsFor: "s" }),
  generateDoWhileTask: () => ({
    steps: [sdk.generateDoWhileTask({ ...named("s"), loopOver: [one()], loopCondition: "$.s.iteration < 2" }, sdk.taskGenMapper), echo("count", "${s.output.iteration}")],
    output: { result: 2 },
  }),
  generateEventTask: () => ({ steps: [sdk.generateEventTask({ ...named("s"), sink: "conductor:built" })], output: { sink: "conductor:built" } }),
  generateForkJoinTask: () => ({
    steps: [sdk.generateForkJoinTask({ ...named("s"), forkTasks: [[one("a")], [one("b")]] }, sdk.taskGenMapper), sdk.generateJoinTask({ ...named("j"), joinOn: ["a", "b"] })],
    output: { a: { result: 1 }, b: { result: 1 } },
  }),
  generateHTTPTask: () => ({ steps: [sdk.generateHTTPTask({ ...named("s"), inputParameters: { http_request: { uri: page(), method: "GET" } } }), echo("n", "${s.output.response.body.n}")], output: { result: 1 } }),
  generateImageTask: () => ({ steps: [sdk.generateImageTask("s", "openai", "image-1", { prompt: "a cat" })], waitsFor: "s" }),
  generateInlineTask: () => ({ steps: [echo("s", 7)], output: { result: 7 } }),
  generateJQTransformTask: () => ({ steps: [sdk.generateJQTransformTask({ ...named("s"), inputParameters: { queryExpression: ".n | add", n: [1, 2] } })], output: { result: 3 } }),
  generateJoinTask: () => ({ steps: [sdk.forkTask("s", [one("a")]), sdk.generateJoinTask({ ...named("j"), joinOn: ["a"] })], output: { a: { result: 1 } } }),
  generateKafkaPublishTask: () => ({ steps: [sdk.generateKafkaPublishTask({ ...named("s"), inputParameters: { kafka_request: { topic: "t", value: "v", bootStrapServers: "127.0.0.1:1", requestTimeoutMs: 100 } } })], reason: "Kafka" }),
  generateSetVariableTask: () => ({ steps: [sdk.generateSetVariableTask({ ...named("s"), inputParameters: { color: "red" } }), echo("read", "${workflow.variables.color}")], output: { result: "red" } }),
  generateSimpleTask: () => ({ steps: [sdk.generateSimpleTask({ ...named("built_worker"), taskReferenceName: "s" })], reports: "s", output: { said: 1 } }),
  generateSubWorkflowTask: () => ({ steps: [sdk.generateSubWorkflowTask({ ...named("s"), subWorkflowParam: { name: child.name, version: 1 } })], output: { result: 4 } }),
  generateSwitchTask: () => ({ steps: [sdk.generateSwitchTask({ ...named("s"), inputParameters: { switchCaseValue: "b" }, decisionCases: { b: [echo("chosen", 2)] } }, sdk.taskGenMapper)], output: { result: 2 } }),
  generateTerminateTask: () => ({ steps: [sdk.generateTerminateTask({ ...named("s"), inputParameters: { terminationStatus: "FAILED", terminationReason: "enough" } })], reason: "enough" }),
  generateWaitTask: () => ({ steps: [sdk.generateWaitTask(named("s"))], reports: "s", output: { said: 1 } }),
  getDocumentTask: () => ({ steps: [sdk.getDocumentTask("s", page())], waitsFor: "s" }),
  httpPollTask: () => ({
    steps: [sdk.httpPollTask("s", { http_request: { uri: page(), method: "GET" }, pollingInterval: 1, terminationCondition: "$.output.response.body.n === 1" })],
    output: { polls: 1 },
  }),
  httpTask: () => ({ steps: [sdk.httpTask("s", { uri: page(), method: "GET" }), echo("n", "${s.output.response.body.n}")], output: { result: 1 } }),
  humanTask: () => ({ steps: [sdk.humanTask("s", { displayName: "Approve" })], reports: "s", output: { said: 1 } }),
  inlineTask: () => ({ steps: [sdk.inlineTask("s", "1 + 2")], output: { result: 3 } }),
  joinTask: () => ({ steps: [sdk.forkTask("s", [one("a")]), sdk.joinTask("j", ["a"])], output: { a: { result: 1 } } }),
  jsonJqTask: () => ({ steps: [sdk.jsonJqTask("s", "1 + 2")], output: { result: 3 } }),
  kafkaPublishTask: () => ({ steps: [sdk.kafkaPublishTask("s", { topic: "t", value: "v", bootStrapServers: "127.0.0.1:1", requestTimeoutMs: 100 })], reason: "Kafka" }),
  listMcpToolsTask: () => ({ steps: [sdk.listMcpToolsTask("s", page())], reason: "MCP" }),
  newLoopTask: () => ({ steps: [sdk.newLoopTask("s", 2, [one()]), echo("count", "${s.output.iteration}")], output: { result: 2 } }),
  setVariableTask: () => ({ steps: [sdk.setVariableTask("s", { color: "red" }), echo("read", "${workflow.variables.color}")], output: { result: "red" } }),
  simpleTask: () => ({ steps: [sdk.simpleTask("s", "built_worker", {})], reports: "s", output: { said: 1 } }),
  sqsEventTask: () => ({ steps: [sdk.sqsEventTask("s", "built")], reason: "sqs" }),
  startWorkflowTask: () => ({ steps: [sdk.startWorkflowTask("s", child.name, {}, 1), echo("id", "${s.output.workflowId}")], output: {} }),
  subWorkflowTask: () => ({ steps: [sdk.subWorkflowTask("s", child.name, 1)], output: { result: 4 } }),
  switchTask: () => ({ steps: [sdk.switchTask("s", "b", { a: [one("a")], b: [echo("chosen", 2)] })], output: { result: 2 } }),
  terminateTask: () => ({ steps: [sdk.terminateTask("s", "FAILED", "enough")], reason: "enough" }),
  waitForWebhookTask: () => ({ steps: [sdk.waitForWebhookTask("s", { matches: { "$['id']": "7" } })], reports: "s", output: { said: 1 } }),
  waitTaskDuration: () => ({ steps: [sdk.waitTaskDuration("s", "1 second"), echo("after", 1)], output: { result: 1 } }),
  waitTaskUntil: () => ({ steps: [sdk.waitTaskUntil("s", PAST), echo("after", 1)], output: { result: 1 } }),
};

// Without an integration of that name, their tasks fail and say so.
for (const builder of ["llmChatCompleteTask", "llmTextCompleteTask", "llmGenerateEmbeddingsTask"]) {
  CASES[builder] = () => ({ steps: [sdk[builder]("s", "nobody", "m", "hello")], reason: "nobody" });
}
const model = { provider: "nobody", model: "m" };
CASES.llmIndexTextTask = () => ({ steps: [sdk.llmIndexTextTask("s", "default", "docs", model, "A cat", "1")], reason: "nobody" });
CASES.llmSearchIndexTask = () => ({ steps: [sdk.llmSearchIndexTask("s", "default", "docs", model, "cat")], reason: "nobody" });
CASES.llmIndexDocumentTask = () => ({ steps: [sdk.llmIndexDocumentTask("s", "default", "docs", model, page(), "text/plain")], isRefused: true });
const stored = () => sdk.llmStoreEmbeddingsTask("stored", "default", "docs", [1, 0], { docId: "7" });
for (const [builder, found] of Object.entries({
  llmQueryEmbeddingsTask: () => sdk.llmQueryEmbeddingsTask("s", "default", "docs", [1, 0]),
  llmSearchEmbeddingsTask: () => sdk.llmSearchEmbeddingsTask("s", "default", "docs", [1, 0]),
  llmStoreEmbeddingsTask: () => sdk.llmSearchEmbeddingsTask("s", "default", "docs", [1, 0]),
})) {
  CASES[builder] = () => ({ steps: [stored(), found(), echo("count", "${s.output.result}"), sdk.inlineTask("done", "'found'")], output: { result: "found" } });
}

async function run(name, { steps, output, reason, reports, waitsFor, isRefused }) {
  const definition = { ...sdk.workflow(name, steps), ownerEmail: "shop@example.com" };
  await metadata.registerTasks(steps.map((step) => sdk.taskDefinition({ name: step.name, retryCount: 0 })));
  if (isRefused) {
    await assert.rejects(workflows.registerWorkflow(true, definition));
    return;
  }
  await workflows.registerWorkflow(true, definition);
  const id = await workflows.startWorkflow({ name, version: 1 });
  const task = (ref) => async () => (await workflows.getWorkflow(id, true)).tasks.find((each) => each.referenceTaskName === ref);
  if (waitsFor) {
    assert.equal((await eventually(task(waitsFor))).status, "SCHEDULED");
    return;
  }
  if (reports) {
    await eventually(task(reports));
    await finish(id, reports, { said: 1 });
  }
  const found = await endOf(id);
  assert.equal(found.status, reason ? "FAILED" : "COMPLETED", found.reasonForIncompletion);
  if (reason) assert.match(found.reasonForIncompletion, new RegExp(reason));
  for (const [member, value] of Object.entries(output ?? {})) assert.deepEqual(found.output[member], value);
}

for (const [builder, build] of Object.entries(CASES)) {
  test(`steps of ${builder} run to their end`, async () => {
    await workflows.registerWorkflow(true, { ...child, ownerEmail: "shop@example.com" });
    await run(`built_${builder}`, build());
  });
}

test("a workflow with a fork and a workflow in place runs to its end", async () => {
  const executor = clients.getWorkflowClient();
  const inner = new sdk.ConductorWorkflow(executor, "built_inner").add(echo("e", 5));
  const outer = new sdk.ConductorWorkflow(executor, "built_outer")
    .add(inner.toSubWorkflowTask("inside"))
    .fork([[one("a")], [one("b"), one("c")]])
    .add(echo("both", ["${__join_1.output.a.result}", "${__join_1.output.c.result}", "${inside.output.result}"]))
    .ownerEmail("shop@example.com");
  await outer.register();

  const found = await endOf(await outer.startWorkflow({}));

  assert.deepEqual([found.status, found.output], ["COMPLETED", { result: [1, 1, 5] }]);
});

test("generate writes a whole workflow, with joins", async () => {
  const definition = sdk.generate({ name: "built_generated", tasks: [{ ...one("a") }, { ...echo("last", 3) }] });
  await workflows.registerWorkflow(true, { ...definition, ownerEmail: "shop@example.com" });

  const found = await endOf(await workflows.startWorkflow({ name: definition.name, version: definition.version }));

  assert.deepEqual([found.status, found.output.result], ["COMPLETED", 3]);
});

test("every builder that the SDK exports is run and in the table", () => {
  const isBuilder = /^(?!is|reset).*Task$|^forkTaskJoin$|^waitTask(Duration|Until)$/;
  const offered = Object.keys(sdk).filter((name) => typeof sdk[name] === "function" && /^[a-z]/.test(name) && isBuilder.test(name));
  const table = JSON.parse(readFileSync("../../../docs/reference/sdk-compatibility/javascript.json")).builders;
  const of_workflows = ["ConductorWorkflow.fork", "ConductorWorkflow.toSubWorkflowTask", "generate", "workflow"];

  assert.deepEqual(offered.sort(), Object.keys(CASES).sort());
  assert.deepEqual(Object.keys(table).sort(), [...offered, ...of_workflows].sort());
});
