// Fragments that follow what they show.
//
//   <div data-live="/admin/queues/live/" data-rev="…">…</div>     asked again with ?rev=…; 204 where nothing changed
//     data-every="15"    seconds between two looks (2 while the page is used, never less than 15 while it is not)
//     data-at-once       the page brought only a link: the first look is taken now
//     data-with-query    the page's own query goes along, so that a choice in the address is kept
//     data-final         what it shows has ended: no more looks (the server may bring it with the fragment's root)
//   <span class="live" data-live-for="id"></span>                 says how old fragment #id is, with a pause switch
//   <a data-select href="?task=a">                                inside a fragment: changes the address, not the page
//   <details data-load="/admin/…">                                fetches its body when it is opened
//   <p data-announce>                                             read out when its words change, every 5 s at most
//
// Where the server refuses or fails, its own sentence is shown, with the id of the request and a way to try again.
// Where it does not answer at all, the page says so above everything, and the strip no longer says how the engine is.
// What comes is laid over what is there: focus, selection, scroll and what the reader has opened stay.
(() => {
  "use strict";

  const BUSY_MS = 2000, IDLE_MS = 15000, IDLE_AFTER_MS = 60000, LATE_MS = 10000, SKELETON_MS = 300, ANNOUNCE_MS = 5000;
  let usedAt = Date.now();
  for (const event of ["pointerdown", "pointermove", "keydown", "scroll"])
    addEventListener(event, () => { usedAt = Date.now(); }, { passive: true, capture: true });

  // Laying one tree over another -------------------------------------------------------------------------------

  const keyOf = (node) => node.nodeType === 1 ? node.id || node.dataset.key || "" : "";
  const fits = (old, fresh) => old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && keyOf(old) === keyOf(fresh);
  const isHeld = (node) => node.matches("details.act[open], dialog, [data-live]") || node === document.activeElement && node.matches("input, textarea, select");
  const KEPT = { DETAILS: ["open"], INPUT: ["value", "checked"], TEXTAREA: ["value"], OPTION: ["selected"] };

  const morphed = (old, fresh) => {
    if (old.nodeType !== 1) {
      if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
      return;
    }
    if (isHeld(old) || old.isEqualNode(fresh)) return;
    const kept = KEPT[old.nodeName] || [];
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !kept.includes(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes)
      if (old.getAttribute(name) !== value && !kept.includes(name)) old.setAttribute(name, value);
    if (old.hasAttribute("data-loaded")) return;
    children(old, fresh);
  };

  // Without a key, a node is laid over the next one of its kind; blanks between elements do not count.
  const isBlank = (node) => node.nodeType === 3 && !node.nodeValue.trim();
  const next = (node) => { while (node && isBlank(node)) node = node.nextSibling; return node; };
  const likeIt = (place, node) => {
    while (place && (keyOf(place) || !fits(place, node))) place = place.nextSibling;
    return place;
  };

  const children = (old, fresh) => {
    const keyed = new Map([...old.childNodes].filter(keyOf).map((node) => [keyOf(node), node]));
    let place = next(old.firstChild);
    for (const node of [...fresh.childNodes]) {
      if (isBlank(node) && old.children.length) continue;
      const key = keyOf(node), same = key ? keyed.get(key) : likeIt(place, node);
      if (!same || !fits(same, node)) { old.insertBefore(node, place); continue; }
      if (same === place) place = next(place.nextSibling); else old.insertBefore(same, place);
      morphed(same, node);
    }
    while (place) { const after = place.nextSibling; place.remove(); place = after; }
  };

  // Looking ------------------------------------------------------------------------------------------------------

  const parsed = (html) => new DOMParser().parseFromString(html, "text/html").body;
  const told = document.getElementById("words")?.dataset || {};
  const SIGNED_OUT = 0, FOR_GOOD = [SIGNED_OUT, 401, 403, 404, 410];
  let heardAt = Date.now(), silentAt = 0;

  // What an answer that is none says: the sentence of its page or fragment, its id, a button that tries again.
  const refusal = async (response, retry) => {
    const body = response && (response.headers.get("Content-Type") || "").startsWith("text/html") ? parsed(await response.text()) : null;
    const found = body?.querySelector(".panel-error p, .empty, main");
    const sentence = found ? [...found.querySelectorAll("h2, p")].map((node) => node.textContent.trim()).join(" ") || found.textContent.trim() : "";
    const panel = Object.assign(document.createElement("div"), { className: "panel-error" }), said = document.createElement("p");
    panel.setAttribute("role", "alert");
    const plain = !response ? told.unreachable : response.status === SIGNED_OUT ? told.signedOut : `${response.status} ${response.statusText}`;
    said.append(sentence || plain || "", " ");
    const id = response?.headers.get("X-Request-Id");
    if (id) said.append(Object.assign(document.createElement("span"), { className: "quiet", textContent: (told.request || "{}").replace("{}", id) }), " ");
    const again = Object.assign(document.createElement("button"), { type: "button", className: "button plain", textContent: told.retry || "↻" });
    again.addEventListener("click", retry);
    panel.append(said, again);
    return panel;
  };

  class Fragment {
    constructor(root) {
      Object.assign(this, { root, seenAt: Date.now(), askedAt: Date.now(), failed: false, paused: false, busy: false });
      root.addEventListener("click", (event) => this.chosen(event));
      if ("atOnce" in root.dataset) this.look();
    }

    get final() { return "final" in this.root.dataset; }

    get every() {
      const wished = this.root.dataset.every * 1000 || BUSY_MS;
      return Date.now() - usedAt > IDLE_AFTER_MS ? Math.max(wished, IDLE_MS) : wished;
    }

    async look(anew = false) {
      const url = new URL(this.root.dataset.live, location.href);
      if ("withQuery" in this.root.dataset) for (const [name, value] of new URLSearchParams(location.search)) url.searchParams.append(name, value);
      if (this.root.dataset.rev && !anew) url.searchParams.set("rev", this.root.dataset.rev);
      this.busy = true;
      this.askedAt = Date.now();
      let response;
      try {
        response = await fetch(url, { headers: { "X-Requested-With": "fetch" }, redirect: "manual" });
        heardAt = Date.now();
        if (!response.ok) {
          this.refused?.remove();
          this.refused = await refusal(response, () => response.status === SIGNED_OUT ? location.reload() : this.look());
          if (!this.root.closest("header")) this.root.before(this.refused);
          this.gone = FOR_GOOD.includes(response.status);
          throw new Error(response.status);
        }
        if (response.status !== 204) this.take(await response.text(), response.headers.get("X-Revision"));
        this.refused?.remove();
        Object.assign(this, { seenAt: Date.now(), failed: false, gone: false, refused: null });
      } catch (error) {
        this.failed = true;
        if (!response) silentAt = Date.now();
        if (anew && !this.refused) throw error;
      } finally {
        this.busy = false;
      }
    }

    take(html, revision) {
      const before = words(this.root);
      const fresh = parsed(html);
      children(this.root, fresh);
      if (revision) this.root.dataset.rev = revision;
      if (fresh.querySelector("[data-final]") || this.root.querySelector("[data-final]")) this.root.dataset.final = "";
      else delete this.root.dataset.final;
      announce(before, words(this.root));
      document.dispatchEvent(new CustomEvent("ops:changed", { detail: this.root }));
    }

    // A choice inside the fragment changes the address and the fragment; without this script it is a link.
    async chosen(event) {
      const link = event.target.closest("a[data-select]");
      if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
      event.preventDefault();
      history.pushState(null, "", link.href);
      try {
        await this.look(true);
        if (location.hash) document.querySelector(location.hash)?.scrollIntoView({ block: "nearest" });
      } catch { location.reload(); }
    }

    say(line) {
      const age = `${Math.round((Date.now() - this.seenAt) / 1000)} s`;
      const late = this.failed || Date.now() - this.seenAt > Math.max(LATE_MS, 2 * this.every);
      line.hidden = this.final || Boolean(this.gone);
      line.classList.toggle("late", late && !this.paused);
      line.classList.toggle("off", this.paused);
      const words = (this.paused ? told.resting : this.failed ? told.stale : told.updated).replace("{}", age);
      if (!line.firstChild) {
        const button = Object.assign(document.createElement("button"), { type: "button" });
        button.addEventListener("click", () => { this.paused = !this.paused; if (!this.paused) this.look(); this.say(line); });
        line.append("", button);
      }
      line.firstChild.nodeValue = words;
      line.lastChild.textContent = this.paused ? told.goOn : told.pause;
    }

    tick() {
      if (!this.final && !this.gone && !this.paused && !this.busy && Date.now() - this.askedAt >= this.every) this.look();
    }
  }

  const words = (root) => new Map([...root.querySelectorAll("[data-announce]")].map((node, place) => [place, node.textContent.trim()]));
  let announcedAt = 0;
  const announce = (before, after) => {
    const news = [...after].filter(([place, text]) => before.get(place) !== text).map(([, text]) => text);
    if (!news.length || Date.now() - announcedAt < ANNOUNCE_MS) return;
    announcedAt = Date.now();
    document.getElementById("announcer").textContent = news.join(". ");
  };

  // What is fetched when it is opened ---------------------------------------------------------------------------

  const fill = async (details) => {
    const body = details.querySelector(":scope > :not(summary)") || details.appendChild(document.createElement("div"));
    const waiting = setTimeout(() => body.replaceChildren(Object.assign(document.createElement("div"), { className: "skeleton" })), SKELETON_MS);
    try {
      const response = await fetch(details.dataset.load, { headers: { "X-Requested-With": "fetch" } });
      clearTimeout(waiting);
      if (!response.ok) return body.replaceChildren(await refusal(response, () => fill(details)));
      body.replaceChildren(...parsed(await response.text()).childNodes);
      details.dataset.loaded = "";
      document.dispatchEvent(new CustomEvent("ops:changed", { detail: body }));
    } catch {
      clearTimeout(waiting);
      body.replaceChildren(await refusal(null, () => fill(details)));
    }
  };
  document.addEventListener("toggle", ({ target }) => {
    if (target.open && target.dataset?.load && !("loaded" in target.dataset)) fill(target);
  }, true);

  // One clock for all ----------------------------------------------------------------------------------------------

  const fragments = [...document.querySelectorAll("[data-live]")].map((root) => new Fragment(root));
  if (!fragments.length) return;
  document.body.append(Object.assign(document.createElement("p"), { id: "announcer", className: "visually-hidden", ariaLive: "polite" }));
  let silence = null;
  const sayOfSilence = () => {
    const isSilent = silentAt > heardAt;
    document.getElementById("strip")?.classList.toggle("silent", isSilent);
    if (!isSilent) { silence?.remove(); silence = null; }
    if (!isSilent || silence) return;
    silence = Object.assign(document.createElement("p"), { id: "silence", textContent: told.silent });
    silence.setAttribute("role", "alert");
    document.getElementById("content")?.before(silence);
  };
  const say = () => {
    sayOfSilence();
    for (const fragment of fragments)
      for (const line of document.querySelectorAll(`[data-live-for="${fragment.root.id}"]`)) fragment.say(line);
  };
  const tick = () => {
    if (document.visibilityState === "visible") for (const fragment of fragments) fragment.tick();
    say();
  };
  addEventListener("popstate", () => {
    for (const fragment of fragments) if ("withQuery" in fragment.root.dataset) fragment.look(true).catch(() => location.reload());
  });
  document.addEventListener("visibilitychange", tick);
  setInterval(tick, 1000);
  say();
})();
