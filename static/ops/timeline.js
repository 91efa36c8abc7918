// Zoom of a timeline: drag over its axis; +, - and 0 zoom in, zoom out and show all of it. The range is in the address and
// the server draws it. `data-points` has positions in percent with their times, because idle time is not to scale.
(() => {
  "use strict";

  let from = null, brush = null, mark = null;
  const percentOf = (event) => {
    const box = brush.getBoundingClientRect();
    return 100 * Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
  };
  const momentAt = (percent) => {
    const points = brush.dataset.points.split(",").map((point) => point.split(":").map(Number));
    for (let index = 1; index < points.length; index++) {
      const [left, begin] = points[index - 1], [right, end] = points[index];
      if (percent <= right) return Math.round(begin + (end - begin) * (percent - left) / Math.max(right - left, 0.001));
    }
    return points.at(-1)[1];
  };

  document.addEventListener("pointerdown", (event) => {
    const found = event.target.closest("[data-brush]");
    if (!found || event.button) return;
    event.preventDefault();
    brush = found;
    from = percentOf(event);
    mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    mark.setAttribute("class", "brush");
    mark.setAttribute("height", "100%");
    brush.querySelector("svg").append(mark);
  });

  document.addEventListener("pointermove", (event) => {
    if (!mark) return;
    const to = percentOf(event);
    mark.setAttribute("x", `${Math.min(from, to)}%`);
    mark.setAttribute("width", `${Math.abs(to - from)}%`);
  });

  document.addEventListener("pointerup", (event) => {
    if (!mark) return;
    const to = percentOf(event);
    mark.remove();
    mark = null;
    if (Math.abs(to - from) < 1) return;
    const url = new URL(location.href);
    url.searchParams.set("from", momentAt(Math.min(from, to)));
    url.searchParams.set("to", momentAt(Math.max(from, to)));
    // A click on a link, so that live.js loads the fragment.
    const link = Object.assign(document.createElement("a"), { href: url.href });
    link.dataset.select = "";
    document.querySelector(".tab-body").append(link);
    link.click();
    link.remove();
  });

  document.addEventListener("keydown", (event) => {
    if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    const selector = { 0: "[data-fit]", "+": "[data-zoom-in]", "-": "[data-zoom-out]", o: "tr.current-row a.fold" }[event.key];
    if (selector) document.querySelector(`:is(.timeline, .tools) ${selector}`)?.click();
  });
})();
