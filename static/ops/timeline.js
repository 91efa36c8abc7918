// Zoom of a timeline: drag over its axis; 0 shows all of it. The range is in the address and the server draws it.
(() => {
  "use strict";

  let from = null, mark = null;
  const axis = () => document.querySelector("[data-brush]");
  const fractionOf = (event, box) => Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);

  document.addEventListener("pointerdown", (event) => {
    const brush = event.target.closest("[data-brush]");
    if (!brush || event.button) return;
    event.preventDefault();
    from = fractionOf(event, brush.getBoundingClientRect());
    mark = Object.assign(document.createElementNS("http://www.w3.org/2000/svg", "rect"), {});
    mark.setAttribute("class", "brush");
    mark.setAttribute("height", "16");
    brush.querySelector("svg").append(mark);
  });

  document.addEventListener("pointermove", (event) => {
    if (!mark) return;
    const to = fractionOf(event, axis().getBoundingClientRect());
    mark.setAttribute("x", `${100 * Math.min(from, to)}%`);
    mark.setAttribute("width", `${100 * Math.abs(to - from)}%`);
  });

  document.addEventListener("pointerup", (event) => {
    if (!mark) return;
    const brush = axis(), to = fractionOf(event, brush.getBoundingClientRect());
    mark.remove();
    mark = null;
    if (Math.abs(to - from) < 0.01) return;
    const begin = Number(brush.dataset.begin), length = Number(brush.dataset.end) - begin;
    const url = new URL(location.href);
    url.searchParams.set("from", Math.round(begin + Math.min(from, to) * length));
    url.searchParams.set("to", Math.round(begin + Math.max(from, to) * length));
    // A click on a link, so that live.js loads the fragment.
    const link = Object.assign(document.createElement("a"), { href: url.href });
    link.dataset.select = "";
    brush.append(link);
    link.click();
    link.remove();
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === "0" && !event.target.closest("input, textarea, select") && !event.ctrlKey && !event.metaKey)
      document.querySelector("[data-fit]")?.click();
  });
})();
