// Save the draft on the server, so that closing the tab loses nothing.
import { EditorView } from "@codemirror/view";

const AFTER_MS = 1500;

export const drafted = (box) => {
  const address = box.dataset.draft;
  if (!address) return null;
  // The texts are in the page, in the user's language.
  const state = document.querySelector("[data-draft-state]");
  const words = state?.dataset || { kept: "", waits: "", late: "" };
  let timer = null;
  let sent = null;

  const say = (text, isLate) => {
    if (!state) return;
    state.textContent = text;
    state.classList.toggle("late", Boolean(isLate));
  };

  const keep = async (view) => {
    timer = null;
    const text = view.state.doc.toString();
    if (text === sent) return;
    const form = box.closest("form");
    const body = new URLSearchParams({ document: text, base: form.elements.base?.value || "" });
    try {
      const response = await fetch(address, {
        method: "POST", headers: { "X-CSRFToken": form.elements.csrfmiddlewaretoken.value, "X-Requested-With": "fetch" }, body,
      });
      if (!response.ok || response.redirected) throw new Error(response.status);
      sent = text;
      say(words.kept.replace("{time}", new Date().toTimeString().slice(0, 8)));
    } catch {
      say(words.late, true);
      timer = setTimeout(() => keep(view), 5000);
    }
  };

  return {
    extensions: [EditorView.updateListener.of((update) => {
      if (!update.docChanged) return;
      clearTimeout(timer);
      say(words.waits);
      timer = setTimeout(() => keep(update.view), AFTER_MS);
    })],
  };
};
