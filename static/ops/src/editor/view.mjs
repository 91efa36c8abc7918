// Show a textarea as a CodeMirror view. Its text is copied to the textarea, so that the form is submitted as usual.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { json } from "@codemirror/lang-json";
import { bracketMatching, foldGutter, foldKeymap, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, keymap, lineNumbers } from "@codemirror/view";
import { classHighlighter } from "@lezer/highlight";
import { completions } from "./completing.mjs";
import { reindented } from "./formatting.mjs";

// The Content-Security-Policy allows styles with the nonce of the page, which is that of its script.
const nonce = document.currentScript?.nonce || "";

export const common = () => [
  EditorView.cspNonce.of(nonce),
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
      lintGutter(),
      indentOnInput(),
      closeBrackets(),
      autocompletion({ override: [completions(box)], icons: false }),
      highlightActiveLine(),
      highlightActiveLineGutter(),
      highlightSelectionMatches(),
      keymap.of([
        { key: "Mod-s", run: save, preventDefault: true },
        // Escape, then Tab, leaves the editor, so that keyboard users are not trapped.
        ...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...completionKeymap,
        ...lintKeymap, indentWithTab,
      ]),
      EditorView.contentAttributes.of({ "aria-label": box.dataset.label || "", tabindex: "0" }),
      EditorView.updateListener.of((update) => { if (update.docChanged) area.value = update.state.doc.toString(); }),
      extensions,
    ],
  });
  area.hidden = true;
  area.after(view.dom);
  box.classList.add("is-code");
  box.codeView = view;
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
