// Mark the changes since the version that the edit started from, and show two texts side by side to merge them.
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { common } from "./view.mjs";

export const compared = (box) => {
  const original = document.getElementById("original-document");
  if (!original) return null;
  const changes = new Compartment();
  const shown = (more) => more.unifiedMergeView({ original: original.value, mergeControls: true, highlightChanges: true });
  return {
    extensions: [changes.of([])],
    begin: (view) => {
      const toggle = document.querySelector("[data-changes]");
      if (!toggle) return;
      toggle.hidden = false;
      toggle.addEventListener("click", async () => {
        const more = await box.more();
        const isOn = toggle.getAttribute("aria-pressed") !== "true";
        toggle.setAttribute("aria-pressed", String(isOn));
        view.dispatch({ effects: changes.reconfigure(isOn ? shown(more) : []) });
      });
    },
  };
};

// Resolve a conflict: the saved text is on the left, the edited text on the right. The right one is submitted.
for (const box of document.querySelectorAll("[data-merge]")) import("./more.mjs").then(({ MergeView }) => {
  const mine = box.querySelector("[data-mine]");
  const theirs = box.querySelector("[data-theirs]");
  const place = document.createElement("div");
  place.className = "merge-view";
  const view = new MergeView({
    a: { doc: theirs.value, extensions: [common(), EditorState.readOnly.of(true), EditorView.contentAttributes.of({ "aria-label": theirs.ariaLabel, tabindex: "0" })] },
    b: {
      doc: mine.value,
      extensions: [
        common(),
        EditorView.contentAttributes.of({ "aria-label": mine.ariaLabel, tabindex: "0" }),
        EditorView.updateListener.of((update) => { if (update.docChanged) mine.value = update.state.doc.toString(); }),
      ],
    },
    revertControls: "a-to-b",
    gutter: true,
    collapseUnchanged: { margin: 3, minSize: 6 },
    parent: place,
  });
  for (const each of box.querySelectorAll("[data-plain]")) each.hidden = true;
  box.append(place);
  box.mergeView = view;
});
