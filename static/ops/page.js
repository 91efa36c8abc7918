// Behavior of every page: relative times, menus, keyboard shortcuts, the command palette. Pages work without it.
(() => {
  "use strict";

  // Relative times, formatted like insight/durations.py ------------------------------------------------------------------

  const twoUnits = (ms, large, largeName, small, smallName) => {
    const remainder = Math.floor(ms % large / small);
    return `${Math.floor(ms / large)} ${largeName}` + (remainder ? ` ${remainder} ${smallName}` : "");
  };
  const texts = document.body.dataset;
  const formatDuration = (ms) => {
    if (ms < 1000) return `${Math.floor(ms)} ms`;
    if (ms < 60000) return `${(Math.floor(ms / 100) / 10).toFixed(1).replace(".", texts.decimal || ".")} s`;
    if (ms < 3600000) return twoUnits(ms, 60000, "min", 1000, "s");
    if (ms < 86400000) return twoUnits(ms, 3600000, "h", 60000, "min");
    return twoUnits(ms, 86400000, "d", 3600000, "h");
  };
  const formatElapsed = (ms) => ms < 60000 ? `${Math.floor(ms / 1000)} s` : formatDuration(ms);
  const updateTimes = () => {
    for (const time of document.querySelectorAll("time[data-counts]")) {
      const passed = Date.now() - Date.parse(time.dateTime);
      const text = time.dataset.counts === "since" ? formatDuration(Math.max(passed, 0)) : (passed < 0 ? texts.until : texts.ago).replace("{}", formatElapsed(Math.abs(passed)));
      if (time.textContent !== text) time.textContent = text;
    }
  };
  // If the clocks of server and browser differ by 20 s or more, the texts of the server stay.
  const now = Date.parse(texts.now || "");
  if (texts.ago && (!now || Math.abs(Date.now() - now) < 20000)) setInterval(updateTimes, 1000);

  // Menus, messages, dialogs, copies -----------------------------------------------------------------------------------

  const MENUS = "details.filter, details.action-menu, details.menu";
  const openMenus = () => [...document.querySelectorAll(MENUS)].filter((menu) => menu.open);

  // Move the body of an open menu, so that neither the window nor a box around it cuts it off.
  const EDGE = 8;
  const keepInside = (menu) => {
    const body = menu.querySelector(":scope > :not(summary)");
    if (!body) return;
    body.style.translate = body.style.maxWidth = "";
    let left = EDGE, right = document.documentElement.clientWidth - EDGE;
    for (let outer = menu.parentElement; outer; outer = outer.parentElement) {
      if (outer === document.body || getComputedStyle(outer).overflowX === "visible") continue;
      const box = outer.getBoundingClientRect();
      left = Math.max(left, box.left);
      right = Math.min(right, box.left + outer.clientWidth);
    }
    body.style.maxWidth = `${right - left}px`;
    const box = body.getBoundingClientRect();
    const shift = box.left < left ? left - box.left : Math.min(right - box.right, 0);
    if (shift) body.style.translate = `${shift}px`;
  };
  document.addEventListener("toggle", ({ target }) => { if (target.open && target.matches?.(MENUS)) keepInside(target); }, true);
  addEventListener("resize", () => openMenus().forEach(keepInside));
  const showDialog = (id) => { const found = document.getElementById(id); if (found && !found.open) found.showModal(); };

  document.addEventListener("click", (event) => {
    for (const menu of openMenus()) if (!menu.contains(event.target)) menu.open = false;
    const side = document.getElementById("side-open");
    if (side?.checked && !event.target.closest("#side, .burger, #side-open")) side.checked = false;
    if (event.target.nodeName === "DIALOG") event.target.close();
    const opener = event.target.closest("[data-dialog]");
    if (opener) showDialog(opener.dataset.dialog);
    const theme = /#theme-(dark|light)$/.exec(event.target.closest("#find a")?.href || "")?.[1];
    if (theme) {
      event.preventDefault();
      localStorage.setItem("theme", theme);
      document.documentElement.dataset.theme = theme;
      document.getElementById("find").close();
    }
    const copied = event.target.closest("[data-copy]");
    if (copied) navigator.clipboard?.writeText(copied.dataset.copy).then(() => {
      copied.classList.add("copied");
      setTimeout(() => copied.classList.remove("copied"), 1200);
    });
  });

  for (const message of document.querySelectorAll("ul.messagelist li")) {
    const close = Object.assign(document.createElement("button"), { type: "button", className: "close", ariaLabel: texts.close, textContent: "×" });
    close.addEventListener("click", () => message.remove());
    message.append(close);
  }

  // Django's autocomplete fields have no accessible name: each gets that of its label.
  window.django?.jQuery?.(() => {
    for (const label of document.querySelectorAll("label[for]")) {
      const parts = document.querySelectorAll(`#${CSS.escape(label.htmlFor)} + .select2 :is([role=combobox], [role=textbox])`);
      for (const part of parts) part.setAttribute("aria-label", label.textContent.trim());
    }
  });

  // Links of the breadcrumbs lead back to a list with the filters that it had.
  const queryKey = (path) => `ops.query.${path}`;
  sessionStorage.setItem(queryKey(location.pathname), location.search);
  for (const link of document.querySelectorAll(".breadcrumbs a")) link.search ||= sessionStorage.getItem(queryKey(link.pathname)) || "";

  // A search adds only the fields that have a value to the address. Without scripts, the server redirects.
  document.addEventListener("formdata", ({ target, formData }) => {
    if (target.method !== "get") return;
    for (const name of new Set(formData.keys())) if (formData.getAll(name).every((value) => value === "")) formData.delete(name);
  });

  // After a change of a field that others depend on, the parts of the page that show them come from the server.
  for (const form of document.querySelectorAll("form[data-preview]")) {
    let timer = null, requestNumber = 0;
    const preview = async () => {
      const number = ++requestNumber, body = new FormData(form);
      body.set("step", "show");
      const response = await fetch(location.href, { method: "POST", body, headers: { "X-Requested-With": "fetch" } });
      if (number !== requestNumber || !response.ok) return;
      const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
      for (const part of form.querySelectorAll("[data-part]")) {
        const other = fresh.getElementById(part.id);
        if (other && other.innerHTML !== part.innerHTML) part.replaceChildren(...other.childNodes);
      }
    };
    form.addEventListener("input", ({ target }) => {
      if (!target.matches("[data-previews]")) return;
      clearTimeout(timer);
      timer = setTimeout(preview, 400);
    });
  }

  // In a low window, the menu begins at the current entry.
  document.querySelector("#side [aria-current]")?.scrollIntoView({ block: "nearest" });
  // In a narrow one, a row of tabs shows the current tab.
  for (const tab of document.querySelectorAll("nav.tabs [aria-current]")) {
    const [row, own] = [tab.closest("nav.tabs"), tab.getBoundingClientRect()];
    row.scrollLeft += Math.max(0, own.right - row.getBoundingClientRect().right);
  }

  // Open the action menu that the fragment of the address names, for links from the command palette.
  const openTarget = () => {
    const target = location.hash.startsWith("#act-") && document.getElementById(location.hash.slice(1));
    if (target?.nodeName !== "DETAILS") return;
    document.getElementById("find")?.close();
    target.open = true;
    target.querySelector("input:not([type=hidden])")?.focus();
  };
  openTarget();
  addEventListener("hashchange", openTarget);

  const zoneField = document.querySelector("[data-browser-zone]");
  const browserZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zoneField && browserZone && zoneField.value !== browserZone) {
    const button = Object.assign(document.createElement("button"), { type: "button", className: "button plain", textContent: zoneField.dataset.browserZone.replace("{}", browserZone) });
    button.addEventListener("click", () => { zoneField.value = browserZone; });
    zoneField.after(" ", button);
  }

  // Keyboard navigation in the rows of the first table ----------------------------------------------------

  const tableRows = () => [...document.querySelectorAll("[data-rows] > tr, #result_list tbody tr")].filter((row) => row.offsetParent && row.querySelector("a[href]"));
  const currentRow = () => document.querySelector("tr.current-row");
  const moveBy = (steps, among = tableRows()) => {
    if (!among.length) return;
    const index = among.indexOf(currentRow());
    const next = index < 0 ? (steps > 0 ? 0 : among.length - 1) : Math.min(Math.max(index + steps, 0), among.length - 1);
    currentRow()?.classList.remove("current-row");
    among[next].classList.add("current-row");
    among[next].scrollIntoView({ block: "nearest" });
    return among[next];
  };
  const clickIn = (selector, root = document) => root?.querySelector(selector)?.click();
  const openAction = (selector) => {
    const found = document.querySelector(selector);
    if (!found) return;
    if (found.nodeName === "DETAILS") { found.open = true; found.querySelector("input:not([type=hidden]), textarea")?.focus(); } else found.click();
  };
  const moveToFailed = (steps) => {
    const row = moveBy(steps, tableRows().filter((each) => each.querySelector(".badge.failed, .state.failed")));
    if (row) clickIn("a[href]:not(.fold)", row);
  };
  const KEYS = {
    "/": () => document.querySelector("#searchbar, [data-search]")?.focus(),
    "j": () => moveBy(1),
    "k": () => moveBy(-1),
    "Enter": () => clickIn("a[href]:not(.fold)", currentRow()),
    "x": () => clickIn("input.action-select", currentRow()),
    "[": () => moveToFailed(-1),
    "]": () => moveToFailed(1),
    "r": () => openAction("#act-retry, #act-rerun, [data-key-r]"),
    ".": () => (document.querySelector(".buttons .action-menu > summary, .actions select, .buttons .button") || document.body).focus(),
    "?": () => showDialog("keys"),
  };

  // The key G and a letter open a page of the menu.
  const LEAD_MS = 1500;
  let ledAt = -LEAD_MS;
  const goTo = (event) => {
    const isLed = event.timeStamp - ledAt < LEAD_MS;
    ledAt = event.key === "g" ? event.timeStamp : -LEAD_MS;
    const link = isLed && document.querySelector(`#side a[data-key="${CSS.escape(event.key)}"]`);
    if (link) link.click();
    return Boolean(link) || event.key === "g";
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const menu of openMenus()) { menu.open = false; menu.querySelector("summary").focus(); }
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k" && !event.altKey) {
      if (!document.getElementById("find")) return;
      event.preventDefault();
      showDialog("find");
      return;
    }
    const busy = event.target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable], dialog");
    if (busy || event.ctrlKey || event.metaKey || event.altKey || goTo(event) || !Object.hasOwn(KEYS, event.key)) return;
    if (event.key === "Enter" && (!currentRow() || event.target !== document.body)) return;
    event.preventDefault();
    KEYS[event.key]();
  });

  // The command palette -----------------------------------------------------------------------------------------------------------

  const find = document.getElementById("find");
  if (!find) return;
  const field = find.querySelector("input"), list = document.getElementById("find-hits");
  let requestNumber = 0, answeredTerm = null, timer = null;
  const hits = () => [...list.querySelectorAll("a")];
  const selectHit = (steps) => {
    const all = hits();
    if (!all.length) return;
    const index = all.findIndex((hit) => hit.classList.contains("chosen"));
    all[index]?.classList.remove("chosen");
    all[index]?.removeAttribute("aria-selected");
    const next = all[(index + steps + all.length) % all.length];
    next.classList.add("chosen");
    next.setAttribute("aria-selected", "true");
    next.scrollIntoView({ block: "nearest" });
  };
  // Pages of single objects that were opened last, before the pages of the sidebar.
  const recentKey = `ops.recent.${texts.user}`;
  const recent = JSON.parse(localStorage.getItem(recentKey) || "[]");
  const heading = document.querySelector("#content h1");
  if (heading && /\/(change|queue|failures\/\d+|bulk\/[^/]+|views\/\d+|human-tasks\/[^/]+|people\/\d+)\/$/.test(location.pathname)) {
    const address = location.pathname + (location.pathname.endsWith("/queue/") ? location.search : "");
    const page = { address, name: document.title.split(" · ")[0].trim(), note: document.querySelector(".breadcrumbs a:last-of-type")?.textContent || "" };
    localStorage.setItem(recentKey, JSON.stringify([page, ...recent.filter((each) => each.address !== address)].slice(0, 8)));
  }
  const showRecent = () => {
    const sample = list.querySelector("li:has(a[data-page])");
    for (const page of sample ? recent.filter((each) => each.address !== location.pathname) : []) {
      const line = sample.cloneNode(true), link = line.querySelector("a");
      link.href = page.address;
      link.querySelector(".hit-key")?.remove();
      link.querySelector(".kind").textContent = list.dataset.recent;
      link.querySelector("b").textContent = page.name;
      link.querySelector(".muted").textContent = page.note;
      sample.before(line);
    }
  };
  const search = async () => {
    const number = ++requestNumber, term = field.value;
    const response = await fetch(`${list.dataset.source}?q=${encodeURIComponent(term)}&on=${encodeURIComponent(location.pathname)}`, { headers: { "X-Requested-With": "fetch" } });
    if (number !== requestNumber || !response.ok) return;
    list.replaceChildren(...new DOMParser().parseFromString(await response.text(), "text/html").body.childNodes);
    if (!term) showRecent();
    answeredTerm = term;
    selectHit(1);
  };
  field.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(search, 120); });
  field.addEventListener("keydown", async (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") { event.preventDefault(); selectHit(event.key === "ArrowDown" ? 1 : -1); }
    if (event.key !== "Enter") return;
    event.preventDefault();
    // Open a result of the current text, not of an earlier one.
    clearTimeout(timer);
    if (answeredTerm !== field.value) await search();
    const chosen = list.querySelector("a.chosen");
    if (chosen && answeredTerm === field.value) chosen.click();
  });
  document.getElementById("find-button").addEventListener("click", (event) => { event.preventDefault(); showDialog("find"); });
  new MutationObserver(() => { if (find.open) { field.select(); search(); } }).observe(find, { attributes: true, attributeFilter: ["open"] });
})();
