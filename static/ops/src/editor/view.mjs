// Show a textarea as a CodeMirror view. Its text is copied to the textarea, so that the form is submitted as usual.
import { history } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { bracketMatching, foldGutter, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, StateEffect } from "@codemirror/state";
import { EditorView, drawSelection, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import { reindented } from "./formatting.mjs";

// The Content-Security-Policy allows styles with the nonce of the page, which is that of its script.
const nonce = document.querySelector("script[type=module]")?.nonce || "";

// Browsers keep the style of text that is typed over, in an attribute that the policy refuses.
const replacingLines = EditorView.domEventHandlers({
  beforeinput(event, view) {
    // The browser reports a change of the selection later, perhaps after the input that replaces it. The editor reads it now.
    document.dispatchEvent(new Event("selectionchange"));
    const { from, to } = view.state.selection.main, isWithinLine = view.state.doc.lineAt(from).to >= to;
    if (event.inputType !== "insertText" || view.composing || (isWithinLine && event.data.length < 2)) return false;
    view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
    event.preventDefault();
    return true;
  },
});

export const common = () => [
  EditorView.cspNonce.of(nonce),
  replacingLines,
  lineNumbers(),
  history(),
  drawSelection(),
  json(),
  bracketMatching(),
  indentUnit.of("  "),
  EditorState.tabSize.of(2),
  syntaxHighlighting(classHighlighter),
];

export const editorFor = (box, area, extensions) => {
  const save = () => { area.form?.requestSubmit?.(area.form.querySelector("[data-save]")); return true; };
  const view = new EditorView({
    doc: area.value,
    extensions: [
      common(),
      foldGutter(),
      EditorView.contentAttributes.of({ "aria-label": box.dataset.label || "", tabindex: "0" }),
      EditorView.updateListener.of((update) => { if (update.docChanged) area.value = update.state.doc.toString(); }),
      extensions,
    ],
  });
  area.hidden = true;
  area.after(view.dom);
  box.classList.add("is-code");
  box.codeView = view;
  let loading = null;
  box.more = () => loading ??= import("./more.mjs").then((more) => {
    view.dispatch({ effects: StateEffect.appendConfig.of(more.extras(box, save)) });
    box.dispatchEvent(new CustomEvent("complete"));
    return more;
  });
  for (const sign of ["focusin", "pointerover"]) view.dom.addEventListener(sign, () => { box.more(); }, { once: true });
  for (const button of document.querySelectorAll("[data-format]")) {
    button.hidden = false;
    button.addEventListener("click", () => {
      const text = reindented(view.state.doc.toString());
      if (text !== view.state.doc.toString()) view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
      view.focus();
    });
  }
  return view;
};
