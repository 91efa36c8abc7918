// Zoom, pan and an overview for diagrams. Without this script a diagram scrolls in its original size.
//
//   .diagram-box > .diagram > svg         .diagram scrolls; the size of the svg is the zoom
//   .diagram-tools [data-zoom]            buttons: in, out, fit, full
//   .diagram-map                          overview, if a part is out of view: click or drag moves the view
//
// Keys in a diagram: + and - zoom, 0 shows all of it, arrows scroll. Ctrl and the wheel zoom at the pointer, dragging pans.
(() => {
  "use strict";

  const MIN = 0.1, MAX = 2.5, STEP = 1.25, LEAST = 0.6, LEAST_FIT = 0.5, LEAST_FIT_ON_PHONE = 0.45, READABLE = 0.85, DRAG = 4;
  const states = new Map();
  const partsOf = (box) => ({ view: box.querySelector(".diagram"), svg: box.querySelector(".diagram-svg"), map: box.querySelector(".diagram-map") });
  const sizeOf = (svg) => svg.getAttribute("viewBox").split(" ").slice(2).map(Number);
  const clamp = (scale) => Math.min(Math.max(scale, MIN), MAX);
  const create = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };

  const fitting = (view, svg) => {
    const [width, height] = sizeOf(svg);
    return clamp(Math.min(view.clientWidth / width, Math.max(view.clientHeight, 200) / height, 1));
  };

  // A wide diagram is scaled to its frame as long as its texts stay readable. A much wider one scrolls, with an overview.
  const initialScale = (view, svg) => {
    const scale = view.clientWidth / sizeOf(svg)[0], isPhone = innerWidth < 1000;
    if (scale < (isPhone ? LEAST_FIT_ON_PHONE : LEAST_FIT)) return isPhone ? 1 : READABLE;
    return Math.min(isPhone ? scale : Math.max(scale, LEAST), 1);
  };

  // Set the scale; the point of the view at (x, y) stays where it is.
  const zoom = (box, state, scale, x, y) => {
    const { view, svg } = partsOf(box), [width, height] = sizeOf(svg), before = svg.getBoundingClientRect();
    const frame = view.getBoundingClientRect();
    const [atX, atY] = [x ?? frame.left + frame.width / 2, y ?? frame.top + frame.height / 2];
    const [shareX, shareY] = [(atX - before.left) / before.width, (atY - before.top) / before.height];
    state.scale = clamp(scale);
    svg.setAttribute("width", Math.round(width * state.scale));
    svg.setAttribute("height", Math.round(height * state.scale));
    const after = svg.getBoundingClientRect();
    view.scrollLeft += after.left + shareX * after.width - atX;
    view.scrollTop += after.top + shareY * after.height - atY;
    show(box, state);
  };

  // Show the scale, and the visible part in the overview.
  const show = (box, state) => {
    const { view, svg, map } = partsOf(box), label = box.querySelector("[data-zoom=full]");
    if (label) label.textContent = `${Math.round(state.scale * 100)} %`;
    [state.left, state.top] = [view.scrollLeft, view.scrollTop];
    const mark = map?.querySelector(".view");
    if (!mark) return;
    const frame = view.getBoundingClientRect(), drawn = svg.getBoundingClientRect();
    box.classList.toggle("is-whole", drawn.width <= frame.width + 1 && drawn.height <= frame.height + 1);
    const numbers = { x: Math.max(frame.left - drawn.left, 0), y: Math.max(frame.top - drawn.top, 0), width: Math.min(frame.width, drawn.width), height: Math.min(frame.height, drawn.height) };
    for (const [key, value] of Object.entries(numbers)) mark.setAttribute(key, value / state.scale);
  };

  const drawMap = (map, svg) => {
    if (!map) return;
    map.replaceChildren();
    for (const node of svg.querySelectorAll(".diagram-node")) {
      const rect = node.querySelector("rect:not(.behind)");
      const copy = create("rect", { class: node.classList.value.replace(/diagram-node|chosen|inactive/g, "") });
      for (const name of ["x", "y", "width", "height"]) copy.setAttribute(name, rect.getAttribute(name));
      map.append(copy);
    }
    map.append(create("rect", { class: "view" }));
  };

  const center = (view, node) => {
    const inner = node.getBoundingClientRect(), frame = view.getBoundingClientRect();
    view.scrollLeft += inner.left + inner.width / 2 - frame.left - frame.width / 2;
    if (inner.bottom > frame.bottom) view.scrollTop += inner.top + inner.height / 2 - frame.top - frame.height / 2;
  };

  const dragView = (view, event) => {
    const from = [event.clientX, event.clientY, view.scrollLeft, view.scrollTop];
    let moved = false;
    const move = ({ clientX, clientY }) => {
      if (!moved && Math.hypot(clientX - from[0], clientY - from[1]) < DRAG) return;
      moved = true;
      view.classList.add("is-dragged");
      view.scrollTo(from[2] + from[0] - clientX, from[3] + from[1] - clientY);
    };
    const end = () => {
      removeEventListener("pointermove", move);
      view.classList.remove("is-dragged");
      // The click that follows a drag must not follow a link.
      if (moved) addEventListener("click", (click) => { click.preventDefault(); click.stopPropagation(); }, { capture: true, once: true });
      setTimeout(() => { moved = false; });
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", end, { once: true });
  };

  const moveByMap = (box, state, event) => {
    const { view, svg, map } = partsOf(box), [x, y] = (() => {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(map.getScreenCTM().inverse());
      return [point.x * state.scale, point.y * state.scale];
    })();
    const offset = svg.getBoundingClientRect().left - view.getBoundingClientRect().left + view.scrollLeft;
    view.scrollTo(x + offset - view.clientWidth / 2, y - view.clientHeight / 2);
  };

  const listen = (box, state) => {
    const { view } = partsOf(box);
    view.addEventListener("scroll", () => show(box, state), { passive: true });
    view.addEventListener("dragstart", (event) => event.preventDefault());
    view.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && !event.button && !event.target.closest(".diagram-insert")) dragView(view, event);
    });
    view.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(box, state, state.scale * Math.exp(-event.deltaY / 300), event.clientX, event.clientY);
    }, { passive: false });
    const acts = {
      in: () => zoom(box, state, state.scale * STEP),
      out: () => zoom(box, state, state.scale / STEP),
      full: () => zoom(box, state, 1),
      fit: () => { const { view, svg } = partsOf(box); zoom(box, state, fitting(view, svg)); },
    };
    const keys = { "+": acts.in, "=": acts.in, "-": acts.out, "0": acts.fit };
    view.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(keys, event.key)) return;
      event.preventDefault();
      keys[event.key]();
    });
    box.addEventListener("click", (event) => acts[event.target.closest("[data-zoom]")?.dataset.zoom]?.());
    box.addEventListener("pointerdown", (event) => {
      if (!event.target.closest(".diagram-map")) return;
      const move = (moved) => moveByMap(box, state, moved);
      move(event);
      addEventListener("pointermove", move);
      addEventListener("pointerup", () => removeEventListener("pointermove", move), { once: true });
    });
  };

  // Begin with new diagrams; restore scale and position of those that the page has replaced.
  const update = () => {
    for (const [place, box] of document.querySelectorAll(".diagram-box").entries()) {
      const { view, svg, map } = partsOf(box);
      if (!svg) continue;
      let state = states.get(place);
      const isNew = !state;
      if (isNew) states.set(place, state = { scale: initialScale(view, svg) });
      const { left, top } = state;
      drawMap(map, svg);
      if (state.view !== view) { state.view = view; listen(box, state); }
      zoom(box, state, state.scale);
      const node = [".chosen", ".failed", ".active", ".waiting", ".diagram-node"].map((name) => svg.querySelector(name)).find(Boolean);
      if (isNew && node) center(view, node); else if (!isNew) view.scrollTo(left, top);
      show(box, state);
    }
  };

  // The event of a scroll comes with the next frame, an update may come before it.
  const savePlaces = () => {
    for (const state of states.values()) if (state.view?.isConnected) [state.left, state.top] = [state.view.scrollLeft, state.view.scrollTop];
  };

  update();
  document.addEventListener("ops:changing", savePlaces);
  document.addEventListener("ops:changed", update);
  const place = document.querySelector("[data-picture]");
  if (place) new MutationObserver(update).observe(place, { childList: true });
})();
