// Follow the tail of a log: keep its end visible while lines are added, until the user scrolls up or switches it off. Also
// scroll to the line that the address names. Without this script the newest lines are listed all the same.
(() => {
  "use strict";

  let follows = true;
  const tailList = () => document.querySelector("[data-log-tail]");
  const atEnd = (ol) => ol.scrollHeight - ol.scrollTop - ol.clientHeight < 24;

  const updateView = () => {
    const button = document.querySelector("[data-log-follow]"), ol = tailList();
    if (button) {
      button.hidden = false;
      button.setAttribute("aria-pressed", String(follows));
    }
    if (ol && follows) ol.scrollTop = ol.scrollHeight;
  };

  const scrollToChosenLine = () => document.querySelector(".log li.chosen")?.scrollIntoView({ block: "center" });

  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-log-follow]")) return;
    follows = !follows;
    updateView();
  });
  // Scroll events do not bubble, so the listener captures them.
  document.addEventListener("scroll", (event) => {
    const ol = tailList();
    if (!ol || event.target !== ol || follows === atEnd(ol)) return;
    follows = atEnd(ol);
    document.querySelector("[data-log-follow]")?.setAttribute("aria-pressed", String(follows));
  }, true);
  document.addEventListener("ops:changed", updateView);
  updateView();
  scrollToChosenLine();
  for (const ol of document.querySelectorAll(".log ol:not([data-log-tail])")) if (!ol.querySelector(".chosen")) ol.scrollTop = ol.scrollHeight;
})();
