// Following a log: its end stays in sight while new lines come, until the reader scrolls up or switches it off. And a
// line that the address names is brought into sight. Without this script the newest lines are there all the same.
(() => {
  "use strict";

  let follows = true;
  const list = () => document.querySelector("[data-log-tail]");
  const atEnd = (ol) => ol.scrollHeight - ol.scrollTop - ol.clientHeight < 24;

  const show = () => {
    const button = document.querySelector("[data-log-follow]"), ol = list();
    if (button) {
      button.hidden = false;
      button.setAttribute("aria-pressed", String(follows));
    }
    if (ol && follows) ol.scrollTop = ol.scrollHeight;
  };

  const toLine = () => document.querySelector(".log li.chosen")?.scrollIntoView({ block: "center" });

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-log-follow]")) return;
    follows = !follows;
    show();
  });
  // Scrolling does not bubble: it is caught on its way down.
  document.addEventListener("scroll", (event) => {
    const ol = list();
    if (!ol || event.target !== ol || follows === atEnd(ol)) return;
    follows = atEnd(ol);
    document.querySelector("[data-log-follow]")?.setAttribute("aria-pressed", String(follows));
  }, true);
  document.addEventListener("ops:changed", show);
  show();
  toLine();
  for (const ol of document.querySelectorAll(".log ol:not([data-log-tail])")) if (!ol.querySelector(".chosen")) ol.scrollTop = ol.scrollHeight;
})();
