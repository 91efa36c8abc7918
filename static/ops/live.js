// The page of a run follows the run: parts that have changed are exchanged, whatever the reader holds open stays open.
(() => {
  "use strict";

  const EVERY_MS = 2000;
  const FRESHEN_AFTER = 5; // every fifth look ignores the revision, so that "4 s ago" does not stand still
  const root = document.querySelector("[data-live]");
  if (!root) return;

  let looks = 0;
  let seenAt = Date.now();
  let failed = false;
  let timer = null;

  const parts = (from) => new Map([...from.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
  const state = () => root.querySelector('[data-part="state"]').dataset;
  const isOpen = () => state().open === "1";
  const served = new Map([...parts(root)].map(([name, part]) => [name, part.innerHTML]));

  // A part is left alone while somebody types in it or has one of its menus open.
  const isHeld = (part) =>
    part.contains(document.activeElement) && document.activeElement.matches("input, textarea, button, summary")
    || part.querySelector("details.act[open]");

  const branches = (part) => [...part.querySelectorAll("details")];
  const keepOpen = (from, to) => {
    const before = branches(from);
    const after = branches(to);
    if (before.length === after.length) after.forEach((details, place) => { details.open = before[place].open; });
  };

  const exchange = (fresh) => {
    const old = parts(root);
    for (const [name, part] of fresh) {
      const current = old.get(name);
      if (!current) { location.reload(); return; }
      Object.assign(current.dataset, part.dataset);
      if (served.get(name) === part.innerHTML || isHeld(current)) continue;
      const html = part.innerHTML;
      keepOpen(current, part);
      current.className = part.className;
      current.replaceChildren(...part.childNodes);
      served.set(name, html);
      window.ops.localized(current);
    }
    for (const [name, part] of old) if (!fresh.has(name)) part.remove();
  };

  const look = async (search, revision) => {
    const query = new URLSearchParams(search);
    if (revision) query.set("rev", revision);
    const response = await fetch(`${root.dataset.live}?${query}`, { headers: { "X-Requested-With": "fetch" } });
    if (response.status === 204) return;
    if (!response.ok || response.redirected) throw new Error(response.status);
    exchange(parts(new DOMParser().parseFromString(await response.text(), "text/html")));
  };

  const say = () => {
    const line = root.querySelector("[data-live-state]");
    if (!line) return;
    const seconds = Math.round((Date.now() - seenAt) / 1000);
    line.hidden = !isOpen();
    line.classList.toggle("late", failed || seconds > 10);
    line.textContent = failed ? `not updated for ${seconds} s, trying again` : `live, updated ${seconds} s ago`;
  };

  const tick = async () => {
    if (document.visibilityState === "visible" && isOpen()) {
      looks += 1;
      try {
        await look(location.search, looks % FRESHEN_AFTER ? state().rev : "");
        seenAt = Date.now();
        failed = false;
      } catch {
        failed = true;
      }
    }
    say();
    timer = isOpen() ? setTimeout(tick, EVERY_MS) : null;
  };

  // Choosing a task or a filter changes the address and exchanges the same parts; without this script it is a link.
  const choose = async (search, hash) => {
    try {
      await look(search, "");
      document.querySelector(hash || null)?.scrollIntoView({ block: "nearest" });
    } catch {
      location.reload();
    }
  };

  root.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-select]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    history.pushState(null, "", link.href);
    choose(location.search, location.hash);
  });
  window.addEventListener("popstate", () => choose(location.search, location.hash));
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible" && isOpen()) { clearTimeout(timer); tick(); }
  });

  say();
  if (isOpen()) timer = setTimeout(tick, EVERY_MS);
})();
