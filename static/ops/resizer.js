// Width of the side panel: drag its left edge, or focus it and press the arrow keys. The browser remembers the width.
(() => {
  "use strict";

  const MIN = 320, ROOM = 420, STEP = 32, KEY = "ops.panel";
  const root = document.documentElement;
  root.classList.add("can-resize");
  const setWidth = (width, split) => {
    const most = split ? split.clientWidth - ROOM : width;
    const rounded = Math.round(Math.max(Math.min(width, most), MIN));
    root.style.setProperty("--panel-width", `${rounded}px`);
    document.querySelector("[data-resizer]")?.setAttribute("aria-valuenow", rounded);
    return rounded;
  };
  const remembered = Number(localStorage.getItem(KEY));
  if (remembered) setWidth(remembered, document.querySelector(".split"));

  document.addEventListener("pointerdown", (event) => {
    const handle = event.target.closest("[data-resizer]");
    if (!handle || event.button) return;
    event.preventDefault();
    const split = handle.parentElement, right = split.getBoundingClientRect().right;
    const move = (moved) => localStorage.setItem(KEY, setWidth(right - moved.clientX, split));
    root.classList.add("is-resizing");
    addEventListener("pointermove", move);
    addEventListener("pointerup", () => { removeEventListener("pointermove", move); root.classList.remove("is-resizing"); }, { once: true });
  });

  document.addEventListener("keydown", (event) => {
    if (!event.target.matches("[data-resizer]") || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    event.preventDefault();
    const split = event.target.parentElement, width = split.querySelector(".side-panel").offsetWidth;
    localStorage.setItem(KEY, setWidth(width + (event.key === "ArrowLeft" ? STEP : -STEP), split));
  });
})();
