// Convert a position in the text to the path of its value and back. The syntax tree also covers invalid text.
import { ensureSyntaxTree, syntaxTree } from "@codemirror/language";

const VALUES = new Set(["Object", "Array", "String", "Number", "True", "False", "Null"]);
const tree = (state) => ensureSyntaxTree(state, state.doc.length, 100) || syntaxTree(state);

const nameOf = (state, property) => {
  const name = property.getChild("PropertyName");
  if (!name) return "";
  try { return JSON.parse(state.sliceDoc(name.from, name.to)); } catch { return ""; }
};

const elements = (array) => {
  const found = [];
  for (let child = array.firstChild; child; child = child.nextSibling) if (VALUES.has(child.name)) found.push(child);
  return found;
};

// Return the keys of a position, indexes as text. Between two values, the deeper one is used.
export const keysAt = (state, position) => {
  const [before, after] = [keysFrom(state, position, -1), keysFrom(state, position, 1)];
  return after.length > before.length ? after : before;
};

const keysFrom = (state, position, side) => {
  const keys = [];
  for (let node = tree(state).resolveInner(position, side); node; node = node.parent) {
    if (node.name === "Property") keys.unshift(nameOf(state, node));
    else if (node.parent?.name === "Array") {
      const place = elements(node.parent).findIndex((each) => each.from === node.from);
      if (place >= 0) keys.unshift(String(place));
    }
  }
  return keys;
};

export const keysOf = (path) =>
  [...path.matchAll(/\[(\d+)\]|\['([^']*)'\]|\[([^\]]*)\]|([^.[\]]+)/g)].map((found) => found[1] ?? found[2] ?? found[3] ?? found[4]);

// Return the node of the value at a path, or null.
export const nodeAt = (state, keys) => {
  let node = tree(state).topNode.firstChild;
  for (const key of keys) {
    if (node?.name === "Array") node = elements(node)[Number(key)];
    else if (node?.name === "Object") {
      const property = node.getChildren("Property").find((each) => nameOf(state, each) === key);
      node = property?.lastChild;
    } else return null;
    if (!node) return null;
  }
  return node;
};
