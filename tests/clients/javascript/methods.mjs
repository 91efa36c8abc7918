// Print the public methods of every client class that the SDK exports, as JSON: {"ClassName": ["method", ...]}.

import * as sdk from "@io-orkes/conductor-javascript";

const CLIENT = /Client$|Executor$|^TaskManager$|^TaskHandler$/;
const isMethod = (prototype, name) =>
  name !== "constructor" && !name.startsWith("_") && typeof Object.getOwnPropertyDescriptor(prototype, name).value === "function";

const found = {};
for (const [name, exported] of Object.entries(sdk)) {
  if (typeof exported !== "function" || !CLIENT.test(name) || !exported.prototype) continue;
  found[name] = Object.getOwnPropertyNames(exported.prototype).filter((each) => isMethod(exported.prototype, each)).sort();
}
console.log(JSON.stringify(found));
