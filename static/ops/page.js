// Small comforts of every page: moments in the reader's zone, one open menu at a time, "/" goes to the search.
(() => {
  "use strict";

  const localized = (root) => {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const moment = new Date(time.dateTime);
      const utc = moment.toISOString().replace("T", " ").replace(/\.\d+Z/, " UTC");
      time.title = `${moment.toLocaleString(undefined, { timeZoneName: "short" })}\n${utc}`;
    }
  };

  const menus = () => document.querySelectorAll("details.filter[open], details.act[open]");

  document.addEventListener("click", (event) => {
    for (const menu of menus()) if (!menu.contains(event.target)) menu.open = false;
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const menu of menus()) menu.open = false;
    const typing = event.target.closest("input, textarea, select");
    const search = document.getElementById("searchbar");
    if (event.key === "/" && !typing && search) {
      event.preventDefault();
      search.focus();
    }
  });

  window.ops = { localized };
  localized(document);
})();
