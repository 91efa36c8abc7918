// The slider of revisions: releasing it shows the run at that revision. Without this script a button does.
(() => {
  "use strict";

  document.addEventListener("change", (event) => {
    if (!event.target.matches("[data-revision]")) return;
    const url = new URL(location.href);
    url.searchParams.set("revision", event.target.value);
    url.searchParams.set("tab", "events");
    // A click on a link, so that live.js loads the fragment.
    const link = Object.assign(document.createElement("a"), { href: url.href });
    link.dataset.select = "";
    event.target.after(link);
    link.click();
    link.remove();
  });
})();
