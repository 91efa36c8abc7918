// The SDK's ways to run workers.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  NonRetryableException, TaskHandler, TaskManager, TaskRunner, getTaskContext, noopLogger, worker,
} from "@io-orkes/conductor-javascript";
import { clients, define, endOf, eventually, metadata, simple, start, tasks } from "./shop.mjs";

const client = clients.getClient();
const quick = { workerID: "builder-7", pollInterval: 20, concurrency: 2, batchPollingTimeout: 100 };

/** Serve these task types while the work is done. */
async function served(work, workers) {
  const manager = new TaskManager(client, workers, { logger: noopLogger, options: quick });
  manager.startPolling();
  try {
    return await work();
  } finally {
    await manager.stopPolling();
  }
}

const cut = { taskDefName: "cut", execute: async ({ inputData }) => ({ status: "COMPLETED", outputData: { pieces: inputData.size * 2 } }) };
const sew = { taskDefName: "sew", execute: async () => ({ status: "COMPLETED", outputData: { seams: 3 } }) };

test("a task manager serves one step after the other", async () => {
  await define("suit", simple("cut"), simple("sew"));

  const done = await served(async () => endOf(await start("suit")), [cut, sew]);

  assert.equal(done.status, "COMPLETED");
  assert.deepEqual(done.tasks.map((task) => [task.taskDefName, task.workerId]), [["cut", "builder-7"], ["sew", "builder-7"]]);
  assert.deepEqual(done.tasks[0].outputData, { pieces: 4 });
  assert.deepEqual(done.output, { seams: 3 });
});

test("a worker takes many tasks of one type, each once", async () => {
  // A type of its own: a last poll of the workers that have just been stopped would take a task along.
  await define("snips", simple("snip"));
  const seen = [];
  const counting = { ...cut, taskDefName: "snip", execute: async (task) => (seen.push(task.taskId), cut.execute(task)) };

  await served(async () => {
    const ids = await Promise.all(Array.from({ length: 10 }, () => start("snips")));
    for (const id of ids) assert.equal((await endOf(id)).status, "COMPLETED");
  }, [counting]);

  assert.equal(seen.length, 10);
  assert.equal(new Set(seen).size, 10);
});

test("the answer to a report holds the next task, so that no poll is asked for it", async () => {
  await define("chain", simple("link"));
  const ids = await Promise.all(Array.from({ length: 4 }, () => start("chain")));
  let polled = 0;
  const runner = new TaskRunner({
    client,
    worker: { taskDefName: "link", execute: async () => ({ status: "COMPLETED", outputData: {} }) },
    options: { ...quick, concurrency: 1 },
    logger: noopLogger,
    eventListeners: [{ onPollCompleted: (event) => (polled += event.tasksReceived) }],
  });

  runner.startPolling();
  for (const id of ids) assert.equal((await endOf(id)).status, "COMPLETED");
  await runner.stopPolling();

  assert.equal(polled, 1);
});

test("a worker that throws fails its task, which is tried again", async () => {
  await metadata.registerTask({ name: "press", retryCount: 1, retryDelaySeconds: 0, timeoutSeconds: 60, responseTimeoutSeconds: 30 });
  await define("pressed", simple("press"));
  let tries = 0;
  const press = {
    taskDefName: "press",
    execute: async () => {
      if (++tries === 1) throw new Error("the iron is cold");
      return { status: "COMPLETED", outputData: {} };
    },
  };

  const done = await served(async () => endOf(await start("pressed")), [press]);

  assert.equal(done.status, "COMPLETED");
  assert.deepEqual(done.tasks.map((task) => [task.status, task.retryCount]), [["FAILED", 0], ["COMPLETED", 1]]);
  assert.equal(done.tasks[0].reasonForIncompletion, "the iron is cold");
});

test("a failure that no retry can mend ends the workflow at once", async () => {
  await metadata.registerTask({ name: "dye", retryCount: 3, retryDelaySeconds: 0, timeoutSeconds: 60, responseTimeoutSeconds: 30 });
  await define("dyed", simple("dye"));
  const dye = {
    taskDefName: "dye",
    execute: async () => {
      throw new NonRetryableException("there is no such colour");
    },
  };

  const done = await served(async () => endOf(await start("dyed")), [dye]);

  assert.equal(done.status, "FAILED");
  assert.deepEqual(done.tasks.map((task) => task.status), ["FAILED_WITH_TERMINAL_ERROR"]);
});

test("a task that is handed back comes again", async () => {
  await define("dried", simple("dry"));
  let polls = 0;
  const dry = {
    taskDefName: "dry",
    execute: async () => (++polls === 1 ? { status: "IN_PROGRESS", callbackAfterSeconds: 0 } : { status: "COMPLETED", outputData: { polls } }),
  };

  const done = await served(async () => endOf(await start("dried")), [dry]);

  assert.deepEqual(done.output, { polls: 2 });
  assert.equal(done.tasks.length, 1);
});

test("what a worker logs is kept, with its report and by itself", async () => {
  await define("logged", simple("sign"));
  const sign = {
    taskDefName: "sign",
    execute: async (task) => {
      await tasks.addTaskLog(task.taskId, 'said "hm"');
      return { status: "COMPLETED", outputData: {}, logs: [{ log: "signed", createdTime: Date.now() }] };
    },
  };

  const done = await served(async () => endOf(await start("logged")), [sign]);

  const lines = await tasks.getTaskLogs(done.tasks[0].taskId);
  assert.deepEqual(lines.map((line) => line.log).sort(), ['said "hm"', "signed"]);
});

test("a worker of one domain gets that domain's tasks alone", async () => {
  await define("here", simple("pack"));
  const pack = (domain) => ({ taskDefName: "pack", domain, execute: async () => ({ status: "COMPLETED", outputData: { domain } }) });
  const id = await clients.getWorkflowClient().startWorkflow({ name: "here", version: 1, input: {}, taskToDomain: { pack: "paris" } });

  const done = await served(() => served(() => endOf(id), [pack("paris")]), [pack("rome")]);

  assert.deepEqual(done.output, { domain: "paris" });
});

test("a long task keeps its lease by heartbeats", async () => {
  await metadata.registerTask({ name: "weave", retryCount: 0, timeoutSeconds: 60, responseTimeoutSeconds: 2 });
  await define("woven", simple("weave"));
  const weave = {
    taskDefName: "weave",
    leaseExtendEnabled: true,
    execute: () => new Promise((done) => setTimeout(() => done({ status: "COMPLETED", outputData: {} }), 3000)),
  };

  const done = await served(async () => endOf(await start("woven")), [weave]);

  assert.deepEqual(done.tasks.map((task) => task.status), ["COMPLETED"]);
});

test("a task handler registers the definitions of its workers and serves them", async () => {
  await define("hemmed", simple("hem"));
  const hem = worker({
    taskDefName: "hem", pollInterval: 20, registerTaskDef: true, taskDef: { retryCount: 7, timeoutSeconds: 60, responseTimeoutSeconds: 30 },
  })(async () => {
    getTaskContext().addLog("hemmed by hand");
    return { status: "COMPLETED", outputData: { hems: 1 } };
  });
  assert.ok(hem);
  const handler = await TaskHandler.create({ client, logger: noopLogger, healthMonitor: { enabled: false } });
  await handler.startWorkers();

  const done = await start("hemmed").then(endOf).finally(() => handler.stopWorkers());

  assert.deepEqual(done.output, { hems: 1 });
  assert.equal((await metadata.getTask("hem")).retryCount, 7);
  assert.deepEqual((await tasks.getTaskLogs(done.tasks[0].taskId)).map((line) => line.log), ["hemmed by hand"]);
});

test("queues and their pollers can be looked at", async () => {
  await define("counted", simple("count"));
  await start("counted");

  assert.deepEqual(await tasks.getQueueSizeForTask(["count", "nobody"]), { count: 1, nobody: 0 });
  await served(() => eventually(async () => (await tasks.getQueueSizeForTask(["count"])).count === 0), [
    { taskDefName: "count", execute: async () => ({ status: "COMPLETED", outputData: {} }) },
  ]);
  assert.equal((await tasks.getTaskPollData("count"))[0].workerId, "builder-7");
});
