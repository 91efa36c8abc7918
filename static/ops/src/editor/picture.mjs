// Update the diagram when the text changes, and select in one what is selected in the other.
import { EditorView } from "@codemirror/view";
import { keysAt, keysOf, nodeAt } from "./paths.mjs";

const begins = (keys, path) => path.length <= keys.length && path.every((key, place) => key === keys[place]);

export const pictured = (box) => {
  const place = document.querySelector("[data-picture]");
  if (!place) return null;
  let keys = [];
  let shown = null;

  // Return the step that the canvas has selected, otherwise the innermost step at the cursor.
  const mark = () => {
    const { at } = place.dataset;
    if (at !== undefined) keys = at ? keysOf(at) : [];
    let best = null;
    for (const node of place.querySelectorAll(".diagram-node")) {
      node.classList.remove("chosen");
      const path = keysOf(node.dataset.path);
      if (begins(keys, path) && (!best || path.length > best.path.length)) best = { node, path };
    }
    best?.node.classList.add("chosen");
    return best?.node;
  };

  const show = (node) => {
    const inner = place.querySelector(".diagram");
    if (!node || !inner) return;
    const box = node.getBoundingClientRect();
    const frame = inner.getBoundingClientRect();
    if (box.top < frame.top || box.bottom > frame.bottom) inner.scrollTop += box.top - frame.top - frame.height / 3;
    if (box.left < frame.left || box.right > frame.right) inner.scrollLeft += box.left - frame.left - frame.width / 3;
  };

  // Replace the diagram if it has changed: a click on an element that is replaced meanwhile would be lost. The focus
  // stays on the step or the + that has it.
  const replace = (html) => {
    if (html === shown) return;
    shown = html;
    const old = place.querySelector(".diagram");
    const [left, top] = [old?.scrollLeft || 0, old?.scrollTop || 0];
    const { path, insert } = place.contains(document.activeElement) ? document.activeElement.dataset : {};
    place.innerHTML = html;
    place.querySelector(".diagram")?.scrollTo(left, top);
    if (path) place.querySelector(`.diagram-node[data-path="${CSS.escape(path)}"]`)?.focus({ preventScroll: true });
    else if (insert) place.querySelector(`.diagram-insert[data-insert="${CSS.escape(insert)}"]`)?.focus({ preventScroll: true });
  };

  return {
    extensions: [EditorView.updateListener.of((update) => {
      if (!update.selectionSet && !update.docChanged) return;
      keys = keysAt(update.state, update.state.selection.main.head);
      const node = mark();
      if (update.selectionSet && update.view.hasFocus) show(node);
    })],
    begin: (view) => {
      box.addEventListener("checked", ({ detail }) => {
        if (detail.picture === null) { place.classList.add("is-old"); return; }
        place.classList.remove("is-old");
        replace(detail.picture);
        mark();
      });
      place.addEventListener("click", (event) => {
        const node = event.target.closest(".diagram-node");
        if (!node) return;
        event.preventDefault();
        const found = nodeAt(view.state, keysOf(node.dataset.path));
        if (!found) return;
        view.dispatch({
          selection: { anchor: found.from },
          effects: EditorView.scrollIntoView(found.from, { y: "start", yMargin: 40 }),
        });
        if (place.dataset.at === undefined) view.focus();
      });
      box.addEventListener("selected", mark);
    },
  };
};
