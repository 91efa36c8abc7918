// What most tests begin with: clients of the server whose address stands in the environment, and workflows of orders.

import { OrkesClients, noopLogger } from "@io-orkes/conductor-javascript";

export const clients = await OrkesClients.from({ serverUrl: process.env.CONDUCTOR_SERVER_URL, logger: noopLogger });
export const workflows = clients.getWorkflowClient();
export const tasks = clients.getTaskClient();
export const metadata = clients.getMetadataClient();

/** A step for a worker, which gets the input of the whole order. */
export const simple = (type) => ({
  name: type,
  taskReferenceName: `${type}_ref`,
  type: "SIMPLE",
  inputParameters: { size: "${workflow.input.size}" },
});

/** A step that waits to be told. */
export const wait = (ref) => ({ name: ref, taskReferenceName: ref, type: "WAIT", inputParameters: {} });

/** Register a workflow of these steps. */
export async function define(name, ...steps) {
  const definition = { name, version: 1, tasks: steps, schemaVersion: 2, ownerEmail: "shop@example.com", timeoutSeconds: 0 };
  await workflows.registerWorkflow(true, definition);
  return definition;
}

export const start = (name, input = { size: 2 }) => workflows.startWorkflow({ name, version: 1, input });

export const status = async (id) => (await workflows.getWorkflowStatus(id, false, false)).status;

/** End the open task of this reference. */
export const finish = (id, ref, output = {}) => workflows.updateTaskByRefName(ref, id, "COMPLETED", output);

/** What the look finds as soon as it is something. */
export async function eventually(look) {
  for (const end = Date.now() + 15_000; Date.now() < end; await new Promise((go) => setTimeout(go, 20))) {
    const found = await look();
    if (found) return found;
  }
  throw new Error(`Nothing came in time of: ${look}`);
}

/** The workflow when it has ended. */
export const endOf = (id) =>
  eventually(async () => {
    const found = await workflows.getWorkflow(id, true);
    return !["RUNNING", "PAUSED"].includes(found.status) && found;
  });
