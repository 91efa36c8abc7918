// Shows the values of the bar under the pointer beside it. They come from the chart's table.
(() => {
  "use strict";

  const tip = Object.assign(document.createElement("div"), { className: "chart-tip", hidden: true });
  tip.setAttribute("aria-hidden", "true");
  let pointed = null;

  const line = (label, value) => {
    const row = document.createElement("span");
    row.append(label, Object.assign(document.createElement("strong"), { textContent: value }));
    return row;
  };
  const hide = () => { tip.hidden = true; pointed?.classList.remove("pointed"); pointed = null; };

  document.addEventListener("pointermove", (event) => {
    const plot = event.target.closest?.("[data-plot]");
    if (!plot) return hide();
    const box = plot.querySelector(".bars").getBoundingClientRect(), gutter = box.left - plot.getBoundingClientRect().left, rooms = plot.querySelectorAll(".room");
    const place = Math.min(Math.max(Math.floor((event.clientX - box.left) / box.width * rooms.length), 0), rooms.length - 1);
    const table = plot.parentElement.querySelector(".values table"), row = table?.tBodies[0].rows[place];
    if (!row || rooms[place] === pointed) return;
    hide();
    pointed = rooms[place];
    pointed.classList.add("pointed");
    const labels = [...table.tHead.rows[0].cells].slice(1), cells = [...row.cells];
    tip.replaceChildren(Object.assign(document.createElement("b"), { textContent: cells[0].textContent.trim().replace(/\s+/g, " ") }),
      ...labels.map((label, column) => line(label.textContent, cells[column + 1].textContent)));
    tip.hidden = false;
    plot.append(tip);
    const middle = (place + 0.5) / rooms.length * box.width, isRight = middle > box.width / 2;
    tip.style.left = isRight ? "" : `${gutter + middle + 14}px`;
    tip.style.right = isRight ? `${box.width - middle + 14}px` : "";
  });
  document.documentElement.addEventListener("pointerleave", hide);
})();
