// The SDK's clients of integrations and prompts.

import assert from "node:assert/strict";
import { test } from "node:test";
import { clients } from "./shop.mjs";

const integrations = clients.getIntegrationClient();
const prompts = clients.getPromptClient();
const team = { key: "team", value: "tailors", type: "METADATA" };
const floor = { key: "floor", value: "2", type: "METADATA" };
const pairs = (tags) => tags.map((tag) => `${tag.key}=${tag.value}`).sort();
const names = (list) => list.map((one) => one.name ?? one.api).sort();

test("an integration has models, prompts and tags", async () => {
  const configuration = { apiKey: "sk-4711", endpoint: "https://llm.example.org/v1" };
  await integrations.saveIntegrationProvider("main", { type: "openai", category: "AI_MODEL", description: "Ours", enabled: true, configuration });
  await integrations.saveIntegrationApi("main", "gpt-4o", { description: "Large", enabled: true, configuration: {} });

  const found = await integrations.getIntegrationProvider("main");
  assert.deepEqual(found.configuration, { apiKey: "***", endpoint: "https://llm.example.org/v1" });
  assert.deepEqual(names(await integrations.getIntegrationProviders()), ["main"]);
  assert.deepEqual(names(await integrations.getIntegrations()), ["main"]);
  assert.ok(names(await integrations.getIntegrationProviderDefs()).includes("anthropic"));
  assert.equal((await integrations.getIntegrationApi("main", "gpt-4o")).description, "Large");
  assert.deepEqual(names(await integrations.getIntegrationApis("main")), ["gpt-4o"]);
  assert.deepEqual(await integrations.getIntegrationAvailableApis("main"), ["gpt-4o"]);
  assert.deepEqual(await integrations.getProvidersAndIntegrations(), ["main:gpt-4o"]);

  await prompts.savePrompt("greeting", "Hello", "Greet ${name}");
  await integrations.associatePromptWithIntegration("main", "gpt-4o", "greeting");
  assert.deepEqual(names(await integrations.getPromptsWithIntegration("main", "gpt-4o")), ["greeting"]);
  await prompts.deletePrompt("greeting");

  await integrations.setProviderTags("main", [team, floor]);
  await integrations.deleteProviderTags("main", [team]);
  assert.deepEqual(pairs(await integrations.getProviderTags("main")), ["floor=2"]);
  await integrations.setIntegrationTags("main", "gpt-4o", [team, floor]);
  await integrations.deleteIntegrationTags("main", "gpt-4o", [floor]);
  assert.deepEqual(pairs(await integrations.getIntegrationTags("main", "gpt-4o")), ["team=tailors"]);

  await integrations.deleteIntegrationApi("main", "gpt-4o");
  assert.deepEqual(await integrations.getIntegrationApis("main"), []);
  await integrations.deleteIntegrationProvider("main");
  assert.deepEqual(await integrations.getIntegrations(), []);
});

test("a prompt is saved, updated, tagged and deleted", async () => {
  await prompts.savePrompt("greeting", "Hello", "Greet ${name}");
  await prompts.updatePrompt("greeting", "Hi", "Greet ${name} twice");

  const found = await prompts.getPrompt("greeting");
  assert.deepEqual([found.template, found.description, found.variables], ["Greet ${name} twice", "Hi", ["name"]]);
  assert.deepEqual(names(await prompts.getPrompts()), ["greeting"]);

  await prompts.setPromptTags("greeting", [team, floor]);
  await prompts.deletePromptTags("greeting", [team]);
  assert.deepEqual(pairs(await prompts.getPromptTags("greeting")), ["floor=2"]);
  await prompts.deletePrompt("greeting");
  assert.deepEqual(await prompts.getPrompts(), []);
});

test("a trial with an unknown integration says what to do", async () => {
  const trial = { prompt: "Hi", promptVariables: {}, llmProvider: "nothing", model: "m", temperature: 0, topP: 1 };
  await assert.rejects(prompts.testPrompt(trial), /no integration named 'nothing'/);
});
