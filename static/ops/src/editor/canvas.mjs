// The canvas: forms and buttons beside the diagram that edit the text. The server applies each action and returns the
// new text, which is one transaction of the editor, so that it can be undone.
import { isolateHistory, redo, undo } from "@codemirror/commands";
import { keysAt, keysOf, nodeAt } from "./paths.mjs";
import { setKnown } from "./completing.mjs";

const NO_MATCH = 4;
const MENUS = new Set(["step_path", "place_path", "move_path"]);
const isText = (target) => target?.matches?.("input:not([type=checkbox]), textarea, select, .cm-content");

// Replace only the part of the text that differs, so that the cursor and the folds of the rest stay.
const difference = (old, text) => {
  let from = 0;
  while (from < old.length && from < text.length && old[from] === text[from]) from += 1;
  let end = 0;
  while (end < old.length - from && end < text.length - from && old.at(-1 - end) === text.at(-1 - end)) end += 1;
  return { from, to: old.length - end, insert: text.slice(from, text.length - end) };
};

// The rank of a step type in the search for a text: its name, names that begin so, its words, its summary, no match.
const rankOf = ({ names, words, search }, text) => {
  const parts = text.split(/\s+/);
  const known = words.split(" ");
  const isWord = (part) => known.some((word) => word.startsWith(part));
  if (names.split("|").includes(text)) return 0;
  if (names.split("|").some((name) => name.startsWith(text))) return 1;
  if (parts.every(isWord)) return 2;
  return parts.every((part) => isWord(part) || search.includes(part)) ? 3 : NO_MATCH;
};

export const canvased = (box) => {
  const panel = document.querySelector("[data-panel]");
  const picture = document.querySelector("[data-picture]");
  const bar = document.querySelector("[data-canvas-bar]");
  if (!panel || !picture || !bar) return null;
  const form = box.closest("form");
  const message = bar.querySelector("[data-canvas-message]");
  let view = null;
  let shown = null;
  let busy = Promise.resolve();
  let waiting = 0;
  let isTyped = false;

  const isCanvas = () => form.classList.contains("canvas-view");
  const selected = () => panel.querySelector("[name=at]")?.value || "";
  const say = (text, isRefused) => { message.textContent = text || ""; message.classList.toggle("late", Boolean(isRefused)); };

  const setView = (name) => {
    form.classList.toggle("canvas-view", name === "canvas");
    form.classList.toggle("json-view", name !== "canvas");
    for (const link of bar.querySelectorAll("[data-view]")) {
      if (link.dataset.view === name) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
    if (name === "canvas") picture.dataset.at = selected();
    else delete picture.dataset.at;
    box.dispatchEvent(new CustomEvent("selected"));
    if (name === "canvas") return;
    view.requestMeasure();
    box.dispatchEvent(new CustomEvent("shown"));
  };

  const post = async (action, hasForm) => {
    const data = new FormData(form);
    if (hasForm) isTyped = false;
    data.set("canvas", action);
    if (!hasForm) data.delete("panel");
    const response = await fetch(panel.dataset.panel, {
      method: "POST", headers: { "X-Requested-With": "fetch" }, body: new URLSearchParams(data),
    });
    if (response.status !== 422 && (!response.ok || response.redirected)) throw new Error(response.status);
    return response.json();
  };

  // Keep what is being typed while the panel is replaced.
  const showPanel = (html) => {
    const active = panel.contains(document.activeElement) ? document.activeElement : null;
    const kept = active?.id && { id: active.id, value: active.value, start: active.selectionStart, end: active.selectionEnd };
    const opened = [...panel.querySelectorAll("details")].map((each) => each.open);
    const before = selected();
    panel.innerHTML = html;
    prepare();
    if (selected() === before) panel.querySelectorAll("details").forEach((each, place) => { each.open ||= Boolean(opened[place]); });
    const next = kept && document.getElementById(kept.id);
    if (!next) return;
    if (isText(next) && next.nodeName !== "SELECT") next.value = kept.value;
    next.focus({ preventScroll: true });
    if (typeof kept.start === "number") next.setSelectionRange(kept.start, kept.end);
  };

  const prepare = () => {
    const filter = panel.querySelector("[data-type-filter]");
    if (filter) filter.hidden = false;
    for (const help of panel.querySelectorAll("[data-canvas-only]")) help.hidden = false;
  };

  const select = (at) => {
    if (isCanvas()) picture.dataset.at = at;
    const found = at && nodeAt(view.state, keysOf(at));
    if (found) view.dispatch({ selection: { anchor: found.from }, scrollIntoView: true });
    box.dispatchEvent(new CustomEvent("selected"));
  };

  const accept = (report, isLast) => {
    if (report.message || report.document) say(report.message, report.is_refused);
    if (report.panel === undefined) return say(report.message, true);
    if (report.document !== undefined) {
      const changes = difference(view.state.doc.toString(), report.document);
      view.dispatch({ changes, annotations: isolateHistory.of("full"), userEvent: "input.canvas" });
    }
    shown = view.state.doc;
    setKnown(box, report.known);
    const list = document.querySelector("[data-findings]");
    if (list) list.innerHTML = report.list;
    box.dispatchEvent(new CustomEvent("checked", { detail: { ...report, isCanvas: true } }));
    if (isLast) showPanel(report.panel);
    select(report.at);
    return undefined;
  };

  // Actions are sent one after another. A field that changes meanwhile is part of the next one.
  const send = (action, hasForm = true) => {
    waiting += 1;
    panel.ariaBusy = "true";
    busy = busy.then(async () => {
      const doc = view.state.doc;
      try {
        const report = await post(action, hasForm);
        if (view.state.doc !== doc) send(action, hasForm);
        else accept(report, waiting === 1 || action !== "keep");
      } catch {
        say(panel.dataset.failedWords, true);
      }
      waiting -= 1;
      if (!waiting) panel.ariaBusy = "false";
    });
    return busy;
  };

  const focusPanel = () => {
    const target = panel.querySelector("[data-type-filter]:not([hidden])") || panel.querySelector("[data-panel-title]");
    target?.focus();
  };
  // The selection of a text alone does not scroll to it.
  const rename = () => {
    const field = document.getElementById("id_step-taskReferenceName");
    field?.focus();
    field?.select();
  };
  // Show another panel. Until it arrives, the old one cannot be used, since its buttons would change another step.
  const turnTo = async (action) => {
    panel.inert = true;
    await send(action);
    panel.inert = false;
    focusPanel();
  };
  const open = (path) => turnTo(`show:${path}`);
  const pick = (path) => turnTo(`pick:${path}`);
  const act = async (node, action) => {
    if (node && selected() !== node.dataset.path) await send(`show:${node.dataset.path}`);
    await send(action);
  };

  const bestPath = (position) => {
    const keys = keysAt(view.state, position);
    let best = "";
    for (const { dataset } of picture.querySelectorAll(".diagram-node")) {
      const path = keysOf(dataset.path);
      if (path.every((key, place) => key === keys[place]) && dataset.path.length > best.length) best = dataset.path;
    }
    return best;
  };

  const inPicture = () => {
    picture.addEventListener("click", (event) => {
      const place = event.target.closest(".diagram-insert");
      const node = event.target.closest(".diagram-node");
      if (place) { setView("canvas"); pick(place.dataset.insert); }
      else if (node && isCanvas()) open(node.dataset.path);
    });
    // Before the keys of the diagram itself, such as those that scroll it.
    picture.addEventListener("keydown", (event) => {
      const place = event.target.closest(".diagram-insert");
      const node = event.target.closest(".diagram-node");
      const run = (task) => { event.preventDefault(); event.stopPropagation(); task(); };
      if (place && (event.key === "Enter" || event.key === " ")) run(() => { setView("canvas"); pick(place.dataset.insert); });
      if (!isCanvas() || !node) return;
      if (event.key === "Delete" || event.key === "Backspace") run(() => act(node, "delete"));
      else if (event.altKey && event.key === "ArrowUp") run(() => act(node, "move:up"));
      else if (event.altKey && event.key === "ArrowDown") run(() => act(node, "move:down"));
      else if (event.key === "ArrowDown" || event.key === "ArrowUp") run(() => step(node, event.key === "ArrowDown" ? 1 : -1));
      else if (event.key === "F2") run(async () => { await open(node.dataset.path); rename(); });
      else if (event.key === "+") run(() => {
        const after = picture.querySelector(`.diagram-insert[data-after="${CSS.escape(node.dataset.ref)}"]`);
        if (after) pick(after.dataset.insert);
      });
    }, true);
  };

  const step = (node, by) => {
    const nodes = [...picture.querySelectorAll(".diagram-node")];
    nodes[nodes.indexOf(node) + by]?.focus();
  };

  const inPanel = () => {
    panel.addEventListener("change", (event) => {
      if (event.target.name && !MENUS.has(event.target.name)) send("keep");
    });
    panel.addEventListener("click", async (event) => {
      const button = event.target.closest("[data-canvas]");
      if (!button) return;
      event.preventDefault();
      const menu = { show: "step_path", pick: "place_path", move: "move_path" }[button.value];
      await send(menu ? `${button.value}:${panel.querySelector(`[name=${menu}]`).value}` : button.value);
      if (button.value.startsWith("add:")) rename();
      else if (!button.hasAttribute("data-apply")) focusPanel();
    });
    panel.addEventListener("input", (event) => {
      if (event.target.name && !MENUS.has(event.target.name)) isTyped = true;
      if (!event.target.matches("[data-type-filter]")) return;
      const text = event.target.value.toLowerCase().trim();
      const buttons = [...panel.querySelectorAll("[data-search]")];
      buttons.forEach((button, place) => { button.dataset.place ??= place; });
      const ranked = buttons.map((button) => ({ item: button.parentElement, rank: rankOf(button.dataset, text), place: button.dataset.place }));
      ranked.sort((one, other) => one.rank - other.rank || one.place - other.place);
      for (const { item, rank } of ranked) item.hidden = rank === NO_MATCH;
      panel.querySelector(".step-types").append(...ranked.map(({ item }) => item));
      const count = ranked.filter(({ rank }) => rank !== NO_MATCH).length;
      panel.querySelector("[data-no-types]").hidden = count > 0;
    });
    panel.addEventListener("keydown", (event) => {
      const buttons = [...panel.querySelectorAll("li:not([hidden]) > [data-search]")];
      const place = buttons.indexOf(document.activeElement);
      if (event.key === "Escape") {
        event.preventDefault();
        const at = selected();
        send("show:").then(() => picture.querySelector(`.diagram-node[data-path="${CSS.escape(at)}"]`)?.focus());
      } else if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown") && selected()) {
        event.preventDefault();
        send(event.key === "ArrowUp" ? "move:up" : "move:down");
      } else if (buttons.length && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
        event.preventDefault();
        const next = place + (event.key === "ArrowDown" ? 1 : -1);
        (buttons[next] || panel.querySelector("[data-type-filter]")).focus();
      } else if (event.key === "Enter" && event.target.matches("input")) {
        event.preventDefault();
        if (event.target.matches("[data-type-filter]")) buttons[0]?.click();
        else send("keep");
      }
    });
  };

  const inBar = () => {
    for (const link of bar.querySelectorAll("[data-view]")) link.addEventListener("click", (event) => {
      event.preventDefault();
      setView(link.dataset.view);
      localStorage.setItem("ops.editor", link.dataset.view);
      history.replaceState(null, "", link.href);
    });
    bar.querySelector("[data-undo]").addEventListener("click", () => undo(view));
    bar.querySelector("[data-redo]").addEventListener("click", () => redo(view));
    form.addEventListener("keydown", (event) => {
      if (!(event.ctrlKey || event.metaKey) || isText(event.target) || event.target.closest(".cm-editor")) return;
      const key = event.key.toLowerCase();
      if (key === "z" && !event.shiftKey) { event.preventDefault(); undo(view); }
      else if (key === "y" || key === "z") { event.preventDefault(); redo(view); }
    });
  };

  // What is typed in the panel is applied before the text is submitted, also if the field has the focus yet.
  const beforeSubmit = () => form.addEventListener("submit", (event) => {
    if (isTyped) send("keep");
    if (!waiting) return;
    event.preventDefault();
    const { submitter } = event;
    busy.then(() => form.requestSubmit(submitter));
  });

  return {
    extensions: [],
    begin: (editor) => {
      view = editor;
      shown = view.state.doc;
      bar.hidden = false;
      for (const plain of document.querySelectorAll("[data-plain-message]")) plain.remove();
      prepare();
      inPicture();
      inPanel();
      inBar();
      beforeSubmit();
      setView(new URLSearchParams(location.search).get("view") || localStorage.getItem("ops.editor") || "canvas");
      // Show the panel for a text that was changed elsewhere: typed, undone or redone.
      box.addEventListener("checked", ({ detail }) => {
        if (!detail.isCanvas && detail.picture !== null && view.state.doc !== shown) send("", false);
      });
      document.addEventListener("click", (event) => {
        const link = event.target.closest("[data-line]");
        if (!link || !isCanvas()) return;
        const line = view.state.doc.line(Math.min(Number(link.dataset.line), view.state.doc.lines));
        const path = bestPath(line.from + Number(link.dataset.column || 0));
        if (path) open(path);
        else { setView("json"); view.focus(); }
      });
    },
  };
};
