// Completion of field names, step types, task names, references, and the parts of expressions. The server returns the
// known names with each check.
import { keysAt } from "./paths.mjs";

const known = new WeakMap();
export const setKnown = (box, value) => known.set(box, value);

const EXPRESSION = /\$\{([\w.-]*)$/;

const options = (names, type, detail = {}) => names.map((label) => ({ label, type, detail: detail[label] }));

// After `${`: roots; after `${ref.`: its parts; after `${ref.output.a.`: the known fields.
const inExpression = (text, has) => {
  const steps = text.split(".");
  steps.pop();
  if (!steps.length) return options(["workflow", ...has.refs], "variable", has.types);
  if (steps.length === 1) return options(steps[0] === "workflow" ? has.runParts : has.taskParts, "property");
  const from = steps[0] === "workflow" ? has.workflow[steps[1]] : steps[1] === "output" ? has.outputs[steps[0]] : null;
  let shape = from;
  for (const step of steps.slice(2)) shape = shape?.[step];
  return options(Object.keys(shape || {}), "property");
};

const inValue = (keys, has) => {
  const field = keys.at(-1);
  const list = keys.at(-2);
  if (field === "type" && keys.includes("tasks")) return options(has.stepTypes, "type");
  if (list === "joinOn" || list === "defaultExclusiveJoinTask") return options(has.refs, "variable", has.types);
  if (field === "name" && list === "subWorkflowParam") return options(has.workflows, "class");
  if (field === "name" && /^\d+$/.test(list || "")) return options(has.tasks, "function");
  if (field === "failureWorkflow") return options(has.workflows, "class");
  return options(has.choices[field] || [], "constant");
};

// Return the name of the field table of a map.
const tableOf = (keys) => {
  const around = [...keys].reverse().find((key) => !/^\d+$/.test(key));
  if (!around) return "workflow";
  if (around === "subWorkflowParam" || around === "taskDefinition" || around === "rateLimitConfig") return around;
  const isStep = /^\d+$/.test(keys.at(-1) || "");
  return isStep && /tasks|forkTasks|decisionCases|defaultCase|loopOver|catchDefault|Tasks/.test(keys.join(" ")) ? "step" : "";
};

export const completions = (box) => (context) => {
  const has = known.get(box);
  if (!has) return null;
  const line = context.state.doc.lineAt(context.pos);
  const before = line.text.slice(0, context.pos - line.from);
  const expression = EXPRESSION.exec(before);
  if (expression) {
    const from = context.pos - (expression[1].length - (expression[1].lastIndexOf(".") + 1));
    return { from, options: inExpression(expression[1], has), validFor: /^[\w-]*$/ };
  }
  const word = /"([\w.-]*)$/.exec(before);
  if (!word || (before.match(/(?<!\\)"/g) || []).length % 2 === 0) return null;
  const from = context.pos - word[1].length;
  const keys = keysAt(context.state, context.pos);
  const isKey = /[{,]\s*$/.test(before.slice(0, word.index)) || (/^\s*"[\w.-]*$/.test(before) && !inList(context.state, from));
  const isValue = /:\s*$/.test(before.slice(0, word.index)) || !isKey;
  const found = isValue ? inValue(keys, has) : keyOptions(keys, has);
  return found.length ? { from, options: found, validFor: /^[\w.-]*$/ } : null;
};

const keyOptions = (keys, has) => {
  // While a key is typed, the tree may already contain it as a property: use the node around it.
  for (const around of [keys, keys.slice(0, -1)]) {
    const table = has.fields[tableOf(around)];
    if (table) return options(table, "property");
  }
  return [];
};

// Return whether a text at the beginning of a line is in a list, by the last open bracket.
const inList = (state, position) => {
  let depth = 0;
  const text = state.sliceDoc(Math.max(0, position - 5000), position);
  for (let place = text.length - 1; place >= 0; place -= 1) {
    const sign = text[place];
    if (sign === "]" || sign === "}") depth += 1;
    else if (sign === "[" || sign === "{") {
      if (!depth) return sign === "[";
      depth -= 1;
    }
  }
  return false;
};
