// Comforts of every page: times that count, one open menu, keys, the palette. Each page works without them.
(() => {
  "use strict";

  // Times count on in the words of insight/durations.py ------------------------------------------------------------------

  const pair = (ms, large, largeName, small, smallName) => {
    const rest = Math.floor(ms % large / small);
    return `${Math.floor(ms / large)} ${largeName}` + (rest ? ` ${rest} ${smallName}` : "");
  };
  const said = document.body.dataset;
  const span = (ms) => {
    if (ms < 1000) return `${Math.floor(ms)} ms`;
    if (ms < 60000) return `${(Math.floor(ms / 100) / 10).toFixed(1).replace(".", said.decimal || ".")} s`;
    if (ms < 3600000) return pair(ms, 60000, "min", 1000, "s");
    if (ms < 86400000) return pair(ms, 3600000, "h", 60000, "min");
    return pair(ms, 86400000, "d", 3600000, "h");
  };
  const elapsed = (ms) => ms < 60000 ? `${Math.floor(ms / 1000)} s` : span(ms);
  const count = () => {
    for (const time of document.querySelectorAll("time[data-counts]")) {
      const passed = Date.now() - Date.parse(time.dateTime);
      const words = time.dataset.counts === "since" ? span(Math.max(passed, 0)) : (passed < 0 ? said.until : said.ago).replace("{}", elapsed(Math.abs(passed)));
      if (time.textContent !== words) time.textContent = words;
    }
  };
  // A server whose clock differs from the reader's would be misread: then its own words stay.
  const now = Date.parse(said.now || "");
  if (said.ago && (!now || Math.abs(Date.now() - now) < 20000)) setInterval(count, 1000);

  // Menus, messages, dialogs, copies -----------------------------------------------------------------------------------

  const menus = () => document.querySelectorAll("details.filter[open], details.act[open], details.menu[open]");
  const dialog = (id) => { const found = document.getElementById(id); if (found && !found.open) found.showModal(); };

  document.addEventListener("click", (event) => {
    for (const menu of menus()) if (!menu.contains(event.target)) menu.open = false;
    const side = document.getElementById("side-open");
    if (side?.checked && !event.target.closest("#side, .burger, #side-open")) side.checked = false;
    if (event.target.nodeName === "DIALOG") event.target.close();
    const opener = event.target.closest("[data-dialog]");
    if (opener) dialog(opener.dataset.dialog);
    const copied = event.target.closest("[data-copy]");
    if (copied) navigator.clipboard?.writeText(copied.dataset.copy).then(() => {
      copied.classList.add("copied");
      setTimeout(() => copied.classList.remove("copied"), 1200);
    });
  });

  for (const message of document.querySelectorAll("ul.messagelist li")) {
    const close = Object.assign(document.createElement("button"), { type: "button", className: "close", ariaLabel: said.close, textContent: "×" });
    close.addEventListener("click", () => message.remove());
    message.append(close);
  }

  // Django's choosers say nothing of what they choose: each is given the name that its label has.
  window.django?.jQuery?.(() => {
    for (const label of document.querySelectorAll("label[for]")) {
      const parts = document.querySelectorAll(`#${CSS.escape(label.htmlFor)} + .select2 :is([role=combobox], [role=textbox])`);
      for (const part of parts) part.setAttribute("aria-label", label.textContent.trim());
    }
  });

  const system = document.getElementById("nav-system");
  if (system) {
    system.open = system.querySelector("[aria-current]") !== null || localStorage.getItem("ops.system") === "open";
    system.addEventListener("toggle", () => localStorage.setItem("ops.system", system.open ? "open" : "shut"));
  }

  // An address may name a menu of actions: it is opened, as by the palette's actions.
  const named = location.hash.startsWith("#act-") && document.getElementById(location.hash.slice(1));
  if (named?.nodeName === "DETAILS") named.open = true;

  const zone = document.querySelector("[data-own-zone]");
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && own && zone.value !== own) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "button plain", textContent: zone.dataset.ownZone.replace("{}", own) });
    button.addEventListener("click", () => { zone.value = own; });
    zone.after(" ", button);
  }

  // Rows under the keys: those of the first table that offers them ----------------------------------------------------

  const rows = () => [...document.querySelectorAll("[data-rows] > tr, #result_list tbody tr")].filter((row) => row.offsetParent && row.querySelector("a[href]"));
  const current = () => document.querySelector("tr.at");
  const go = (steps, among = rows()) => {
    if (!among.length) return;
    const place = among.indexOf(current());
    const next = place < 0 ? (steps > 0 ? 0 : among.length - 1) : Math.min(Math.max(place + steps, 0), among.length - 1);
    current()?.classList.remove("at");
    among[next].classList.add("at");
    among[next].scrollIntoView({ block: "nearest" });
    return among[next];
  };
  const click = (selector, root = document) => root?.querySelector(selector)?.click();
  const unfold = (selector) => {
    const found = document.querySelector(selector);
    if (!found) return;
    if (found.nodeName === "DETAILS") { found.open = true; found.querySelector("input:not([type=hidden]), textarea")?.focus(); } else found.click();
  };
  const failed = (steps) => {
    const row = go(steps, rows().filter((each) => each.querySelector(".badge.failed")));
    if (row) click("a[data-select], a[href]", row);
  };
  const KEYS = {
    "/": () => document.querySelector("#searchbar, [data-search]")?.focus(),
    "j": () => go(1),
    "k": () => go(-1),
    "Enter": () => click("a[href]", current()),
    "x": () => click("input.action-select, input[data-select-row]", current()),
    "[": () => failed(-1),
    "]": () => failed(1),
    "r": () => unfold("#act-retry, #act-rerun, [data-key-r]"),
    ".": () => (document.querySelector(".buttons .act > summary, .actions select, .buttons .button") || document.body).focus(),
    "?": () => dialog("keys"),
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const menu of menus()) { menu.open = false; menu.querySelector("summary").focus(); }
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && !event.altKey) {
      if (!document.getElementById("find")) return;
      event.preventDefault();
      dialog("find");
      return;
    }
    const busy = event.target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable], dialog");
    if (busy || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
    if (event.key === "Enter" && (!current() || event.target !== document.body)) return;
    event.preventDefault();
    KEYS[event.key]();
  });

  // The palette -----------------------------------------------------------------------------------------------------------

  const find = document.getElementById("find");
  if (!find) return;
  const field = find.querySelector("input"), list = document.getElementById("find-hits");
  let asked = 0, answered = null, timer = null;
  const hits = () => [...list.querySelectorAll("a")];
  const choose = (steps) => {
    const all = hits();
    if (!all.length) return;
    const place = all.findIndex((hit) => hit.classList.contains("chosen"));
    all[place]?.classList.remove("chosen");
    all[place]?.removeAttribute("aria-selected");
    const next = all[(place + steps + all.length) % all.length];
    next.classList.add("chosen");
    next.setAttribute("aria-selected", "true");
    next.scrollIntoView({ block: "nearest" });
  };
  const ask = async () => {
    const number = ++asked, term = field.value;
    const response = await fetch(`${list.dataset.source}?q=${encodeURIComponent(term)}`, { headers: { "X-Requested-With": "fetch" } });
    if (number !== asked || !response.ok) return;
    list.replaceChildren(...new DOMParser().parseFromString(await response.text(), "text/html").body.childNodes);
    answered = term;
    choose(1);
  };
  field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, 120); });
  field.addEventListener("keydown", async (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); choose(event.key === "ArrowDown" ? 1 : -1); }
    if (event.key !== "Enter") return;
    event.preventDefault();
    // What is opened is what was typed, not what an earlier answer has shown.
    clearTimeout(timer);
    if (answered !== field.value) await ask();
    const chosen = list.querySelector("a.chosen");
    if (chosen && answered === field.value) location.href = chosen.href;
  });
  document.getElementById("find-button").addEventListener("click", (event) => { event.preventDefault(); dialog("find"); });
  new MutationObserver(() => { if (find.open) { field.select(); ask(); } }).observe(find, { attributes: true, attributeFilter: ["open"] });
})();
