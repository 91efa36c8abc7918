// Replace each textarea in [data-code-editor] by a code editor. Without this script it stays a textarea.
import { editorFor } from "./view.mjs";
import { checked } from "./checking.mjs";
import { drafted } from "./drafting.mjs";
import { pictured } from "./picture.mjs";
import { canvased } from "./canvas.mjs";
import { compared } from "./comparing.mjs";

for (const box of document.querySelectorAll("[data-code-editor]")) {
  const area = box.querySelector("textarea");
  const parts = [checked(box), drafted(box), pictured(box), compared(box), canvased(box)].filter(Boolean);
  const view = editorFor(box, area, parts.flatMap((part) => part.extensions));
  for (const part of parts) part.begin?.(view);
}
