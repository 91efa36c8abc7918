// Check the text on the server: mark the lines with findings, update the list of findings, the diagram and completion.
import { StateEffect } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { setKnown } from "./completing.mjs";

const AFTER_MS = 450;
const SEVERITY = { error: "error", warning: "warning", hint: "info" };

// Return the range of a finding in the current text. The server counts columns like the browser.
const span = (doc, finding) => {
  const line = doc.line(Math.min(Math.max(finding.line, 1), doc.lines));
  const from = Math.min(line.from + finding.column, line.to);
  return { from, to: Math.min(from + finding.length, line.to) };
};

const correction = (finding, words) => finding.meant && finding.written ? [{
  name: words.replace("{name}", finding.meant),
  apply: (view, from, to) => {
    const text = view.state.sliceDoc(from, to);
    view.dispatch({ changes: { from, to, insert: text.replaceAll(finding.written, finding.meant) } });
  },
}] : [];

export const checked = (box) => {
  const address = box.dataset.check;
  if (!address) return null;
  const list = document.querySelector("[data-findings]");
  const token = () => box.closest("form").elements.csrfmiddlewaretoken.value;

  const ask = async (text) => {
    const response = await fetch(address, {
      method: "POST",
      headers: { "X-CSRFToken": token(), "X-Requested-With": "fetch" },
      body: new URLSearchParams({ document: text }),
    });
    if (!response.ok || response.redirected) throw new Error(response.status);
    return response.json();
  };

  let diagnostics = [];
  let checkedDoc = null;
  let isUsed = false;
  let timer = null;
  let hasGutter = false;

  // Mark the findings in the text as soon as it is used.
  const mark = async (view) => {
    if (!isUsed || (!diagnostics.length && !hasGutter)) return;
    const more = await box.more();
    if (view.state.doc !== checkedDoc) return;
    if (!hasGutter) view.dispatch({ effects: StateEffect.appendConfig.of(more.lintGutter()) });
    hasGutter = true;
    view.dispatch(more.setDiagnostics(view.state, diagnostics));
  };

  const check = async (view) => {
    const doc = view.state.doc;
    let report;
    try {
      report = await ask(doc.toString());
    } catch {
      if (list) list.dataset.stale = list.dataset.staleWords;
      return;
    }
    if (view.state.doc !== doc) return;
    setKnown(box, report.known);
    checkedDoc = doc;
    if (list) { list.innerHTML = report.list; delete list.dataset.stale; }
    box.dispatchEvent(new CustomEvent("checked", { detail: report }));
    diagnostics = report.findings.map((finding) => ({
      ...span(doc, finding), severity: SEVERITY[finding.severity], message: finding.message, actions: correction(finding, list?.dataset.useWords || "{name}"),
    }));
    mark(view);
  };

  const goTo = (view, line, column) => {
    const found = view.state.doc.line(Math.min(Math.max(line, 1), view.state.doc.lines));
    view.dispatch({ selection: { anchor: Math.min(found.from + column, found.to) }, scrollIntoView: true });
    view.focus();
  };

  return {
    extensions: [EditorView.updateListener.of((update) => {
      if (!update.docChanged) return;
      clearTimeout(timer);
      timer = setTimeout(() => check(update.view), AFTER_MS);
    })],
    begin: (view) => {
      // The page has the findings of the text that it was loaded with: a text behind the canvas is checked when it is shown.
      if (!document.querySelector("[data-panel]")) check(view);
      box.addEventListener("shown", () => { if (view.state.doc !== checkedDoc) check(view); });
      box.addEventListener("complete", () => { isUsed = true; mark(view); });
      document.addEventListener("click", (event) => {
        const link = event.target.closest("[data-line]");
        if (!link) return;
        event.preventDefault();
        goTo(view, Number(link.dataset.line), Number(link.dataset.column || 0));
      });
    },
  };
};
