// Fragments of a page that update themselves.
//
//   <div data-live="/admin/queues/live/" data-rev="…">…</div>     requested with ?rev=…; 204 if it is unchanged
//     data-every="15"    seconds between two requests (default 2; at least 15 while the page is not used)
//     data-load-now      request it immediately: the page has only a placeholder
//     data-with-query    send the query of the page's address too
//     data-final         the content is final: no more requests (the server may set it on an element of the fragment)
//   <span class="live" data-live-for="id"></span>                 shows the age of fragment #id, with a pause button
//   <a data-select href="?task=a">                                in a fragment: changes the address, not the page
//   <details data-load="/admin/…">                                loads its body when it is opened
//   <p data-announce>                                             announced by screen readers when its text changes,
//                                                                 at most every 5 s
//
// If the server returns an error, the fragment shows its message, the request id and a button to try again. If the server
// does not respond, the page shows a warning and the status strip shows "No response". Updates keep the focus, the
// selection, the scroll position and opened sections.
(() => {
  "use strict";

  const BUSY_MS = 2000, IDLE_MS = 15000, IDLE_AFTER_MS = 60000, LATE_MS = 10000, SKELETON_MS = 300, ANNOUNCE_MS = 5000;
  let usedAt = Date.now();
  for (const event of ["pointerdown", "pointermove", "keydown", "scroll"])
    addEventListener(event, () => { usedAt = Date.now(); }, { passive: true, capture: true });

  // Update a DOM tree in place --------------------------------------------------------------------------------

  const keyOf = (node) => node.nodeType === 1 ? node.id || node.dataset.key || "" : "";
  const isSameKind = (old, fresh) => old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && keyOf(old) === keyOf(fresh);
  const isProtected = (node) => node.matches("details.action-menu[open], dialog, [data-live]") || node === document.activeElement && node.matches("input, textarea, select");
  // What a user may have entered or opened.
  const PRESERVED_ATTRIBUTES = { DETAILS: ["open"], INPUT: ["value", "checked"], TEXTAREA: ["value"], OPTION: ["selected"] };

  const morph = (old, fresh) => {
    if (old.nodeType !== 1) {
      if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
      return;
    }
    if (isProtected(old) || old.isEqualNode(fresh)) return;
    const preserved = PRESERVED_ATTRIBUTES[old.nodeName] || [];
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !preserved.includes(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes)
      if (old.getAttribute(name) !== value && !preserved.includes(name)) old.setAttribute(name, value);
    if (old.hasAttribute("data-loaded")) return;
    morphChildren(old, fresh);
  };

  // A node without a key updates the next node with the same name. Whitespace between elements is ignored, except
  // before an inserted one: without it, two words would become one.
  const isBlank = (node) => node?.nodeType === 3 && !node.nodeValue.trim();
  const skipBlanks = (node) => { while (node && isBlank(node)) node = node.nextSibling; return node; };
  const findSimilar = (position, node) => {
    while (position && (keyOf(position) || !isSameKind(position, node))) position = position.nextSibling;
    return position;
  };

  const morphChildren = (old, fresh) => {
    const keyed = new Map([...old.childNodes].filter(keyOf).map((node) => [keyOf(node), node]));
    let position = skipBlanks(old.firstChild);
    for (const node of [...fresh.childNodes]) {
      if (isBlank(node) && old.children.length) continue;
      const key = keyOf(node), same = key ? keyed.get(key) : findSimilar(position, node);
      if (!same || !isSameKind(same, node)) {
        if (isBlank(node.previousSibling) && !isBlank(position ? position.previousSibling : old.lastChild)) old.insertBefore(new Text(" "), position);
        old.insertBefore(node, position);
        continue;
      }
      if (same === position) position = skipBlanks(position.nextSibling); else old.insertBefore(same, position);
      morph(same, node);
    }
    while (position) { const after = position.nextSibling; position.remove(); position = after; }
  };

  // Request updates -----------------------------------------------------------------------------------------------

  const parseHtml = (html) => new DOMParser().parseFromString(html, "text/html").body;
  const texts = document.getElementById("live-texts")?.dataset || {};
  const SIGNED_OUT = 0, PERMANENT_STATUSES = [SIGNED_OUT, 401, 403, 404, 410];
  let respondedAt = Date.now(), unreachableAt = 0;

  // Return a panel with the message of an error response, its request id and a button to try again.
  const errorPanel = async (response, retry) => {
    const body = response && (response.headers.get("Content-Type") || "").startsWith("text/html") ? parseHtml(await response.text()) : null;
    const found = body?.querySelector(".panel-error p, .empty, main");
    const sentence = found ? [...found.querySelectorAll("h2, p")].map((node) => node.textContent.trim()).join(" ") || found.textContent.trim() : "";
    const panel = Object.assign(document.createElement("div"), { className: "panel-error" }), paragraph = document.createElement("p");
    panel.setAttribute("role", "alert");
    const fallback = !response ? texts.unreachable : response.status === SIGNED_OUT ? texts.signedOut : `${response.status} ${response.statusText}`;
    paragraph.append(sentence || fallback || "", " ");
    const id = response?.headers.get("X-Request-Id");
    if (id) paragraph.append(Object.assign(document.createElement("span"), { className: "muted", textContent: (texts.request || "{}").replace("{}", id) }), " ");
    const again = Object.assign(document.createElement("button"), { type: "button", className: "button plain", textContent: texts.retry || "↻" });
    again.addEventListener("click", retry);
    panel.append(paragraph, again);
    return panel;
  };

  class Fragment {
    constructor(root) {
      Object.assign(this, { root, updatedAt: Date.now(), requestedAt: Date.now(), failed: false, paused: false, busy: false });
      root.addEventListener("click", (event) => this.select(event));
      if ("loadNow" in root.dataset) this.update();
    }

    get final() { return "final" in this.root.dataset; }

    get interval() {
      const requested = this.root.dataset.every * 1000 || BUSY_MS;
      return Date.now() - usedAt > IDLE_AFTER_MS ? Math.max(requested, IDLE_MS) : requested;
    }

    async update(force = false) {
      const url = new URL(this.root.dataset.live, location.href);
      if ("withQuery" in this.root.dataset) for (const [name, value] of new URLSearchParams(location.search)) url.searchParams.append(name, value);
      if (this.root.dataset.rev && !force) url.searchParams.set("rev", this.root.dataset.rev);
      this.busy = true;
      this.requestedAt = Date.now();
      // The reply of an earlier selection may arrive last.
      const number = this.requests = (this.requests || 0) + 1, isOld = () => number !== this.requests;
      let response;
      try {
        response = await fetch(url, { headers: { "X-Requested-With": "fetch" }, redirect: "manual" });
        respondedAt = Date.now();
        if (isOld()) return;
        if (!response.ok) {
          this.errorElement?.remove();
          this.errorElement = await errorPanel(response, () => response.status === SIGNED_OUT ? location.reload() : this.update());
          if (!this.root.closest("header")) this.root.before(this.errorElement);
          this.isGone = PERMANENT_STATUSES.includes(response.status);
          throw new Error(response.status);
        }
        const html = response.status === 204 ? null : await response.text();
        if (isOld()) return;
        if (html !== null) this.apply(html, response.headers.get("X-Revision"));
        this.errorElement?.remove();
        Object.assign(this, { updatedAt: Date.now(), failed: false, isGone: false, errorElement: null });
      } catch (error) {
        if (isOld()) return;
        this.failed = true;
        if (!response) unreachableAt = Date.now();
        if (force && !this.errorElement) throw error;
      } finally {
        if (!isOld()) this.busy = false;
      }
    }

    apply(html, revision) {
      const before = announcedTexts(this.root), wasFinal = this.final;
      const fresh = parseHtml(html);
      document.dispatchEvent(new CustomEvent("ops:changing", { detail: this.root }));
      morphChildren(this.root, fresh);
      if (revision) this.root.dataset.rev = revision;
      if (fresh.querySelector("[data-final]") || this.root.querySelector("[data-final]")) this.root.dataset.final = "";
      else delete this.root.dataset.final;
      // What has just ended, such as a bulk operation, changes the counts of the header.
      if (this.final && !wasFinal) fragments.find(({ root }) => root.id === "strip")?.update();
      announce(before, announcedTexts(this.root));
      document.dispatchEvent(new CustomEvent("ops:changed", { detail: this.root }));
    }

    // A selection in the fragment changes the address and the fragment. Without this script it is a link.
    async select(event) {
      const link = event.target.closest("a[data-select]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      // Not `link.href`, which is an object for links in a drawing.
      history.pushState(null, "", link.getAttribute("href"));
      try {
        await this.update(true);
        const panel = this.root.querySelector(".side-panel");
        if (location.hash) document.querySelector(location.hash)?.scrollIntoView({ block: "nearest" });
        // On a narrow screen, the panel stands below what was selected.
        else if (panel?.getBoundingClientRect().top > innerHeight * 0.6) panel.scrollIntoView();
      } catch { location.reload(); }
    }

    showAge(line) {
      const age = `${Math.round((Date.now() - this.updatedAt) / 1000)} s`;
      const late = this.failed || Date.now() - this.updatedAt > Math.max(LATE_MS, 2 * this.interval);
      line.hidden = this.final || Boolean(this.isGone);
      line.classList.toggle("late", late && !this.paused);
      line.classList.toggle("off", this.paused);
      const label = (this.paused ? texts.paused : this.failed ? texts.stale : texts.updated).replace("{}", age);
      if (!line.firstChild) {
        const button = Object.assign(document.createElement("button"), { type: "button" });
        button.addEventListener("click", () => { this.paused = !this.paused; if (!this.paused) this.update(); this.showAge(line); });
        line.append("", button);
      }
      line.firstChild.nodeValue = label;
      line.lastChild.textContent = this.paused ? texts.resume : texts.pause;
    }

    tick() {
      if (!this.final && !this.isGone && !this.paused && !this.busy && Date.now() - this.requestedAt >= this.interval) this.update();
    }
  }

  const announcedTexts = (root) => new Map([...root.querySelectorAll("[data-announce]")].map((node, position) => [position, node.textContent.trim()]));
  let announcedAt = 0;
  const announce = (before, after) => {
    const changed = [...after].filter(([position, text]) => before.get(position) !== text).map(([, text]) => text);
    if (!changed.length || Date.now() - announcedAt < ANNOUNCE_MS) return;
    announcedAt = Date.now();
    document.getElementById("announcer").textContent = changed.join(". ");
  };

  // Load a section when it is opened ----------------------------------------------------------------------------

  const loadSection = async (details) => {
    const body = details.querySelector(":scope > :not(summary)") || details.appendChild(document.createElement("div"));
    const waiting = setTimeout(() => body.replaceChildren(Object.assign(document.createElement("div"), { className: "skeleton" })), SKELETON_MS);
    try {
      const response = await fetch(details.dataset.load, { headers: { "X-Requested-With": "fetch" } });
      clearTimeout(waiting);
      if (!response.ok) return body.replaceChildren(await errorPanel(response, () => loadSection(details)));
      body.replaceChildren(...parseHtml(await response.text()).childNodes);
      details.dataset.loaded = "";
      document.dispatchEvent(new CustomEvent("ops:changed", { detail: body }));
    } catch {
      clearTimeout(waiting);
      body.replaceChildren(await errorPanel(null, () => loadSection(details)));
    }
  };
  document.addEventListener("toggle", ({ target }) => {
    if (target.open && target.dataset?.load && !("loaded" in target.dataset)) loadSection(target);
  }, true);

  // One timer for all fragments ------------------------------------------------------------------------------------

  const fragments = [...document.querySelectorAll("[data-live]")].map((root) => new Fragment(root));
  if (!fragments.length) return;
  document.body.append(Object.assign(document.createElement("p"), { id: "announcer", className: "visually-hidden", ariaLive: "polite" }));
  let warning = null;
  const showConnection = () => {
    const hasNoResponse = unreachableAt > respondedAt;
    document.getElementById("strip")?.classList.toggle("no-response", hasNoResponse);
    if (!hasNoResponse) { warning?.remove(); warning = null; }
    if (!hasNoResponse || warning) return;
    warning = Object.assign(document.createElement("p"), { id: "no-response", textContent: texts.noResponse });
    warning.setAttribute("role", "alert");
    document.getElementById("content")?.before(warning);
  };
  const showAges = () => {
    showConnection();
    for (const fragment of fragments)
      for (const line of document.querySelectorAll(`[data-live-for="${fragment.root.id}"]`)) fragment.showAge(line);
  };
  const tick = () => {
    if (document.visibilityState === "visible") for (const fragment of fragments) fragment.tick();
    showAges();
  };
  addEventListener("popstate", () => {
    for (const fragment of fragments) if ("withQuery" in fragment.root.dataset) fragment.update(true).catch(() => location.reload());
  });
  document.addEventListener("visibilitychange", tick);
  setInterval(tick, 1000);
  showAges();
})();
