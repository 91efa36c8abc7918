// What an editor needs once it is used: keys, completion, search, marks of findings, and the comparison of two texts.
// It is loaded when the editor has the focus or the pointer, so that the first visit to a page is light.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, historyKeymap, indentWithTab } from "@codemirror/commands";
import { foldKeymap, indentOnInput } from "@codemirror/language";
import { lintKeymap } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { highlightActiveLine, highlightActiveLineGutter, keymap } from "@codemirror/view";
import { completions } from "./completing.mjs";

export { lintGutter, setDiagnostics } from "@codemirror/lint";
export { MergeView, unifiedMergeView } from "@codemirror/merge";

export const extras = (box, save) => [
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
];
