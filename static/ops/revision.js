// The slider of revisions: letting it go shows the run as it was then. Without this script a button does.
(() => {
  "use strict";

  document.addEventListener("change", (event) => {
    if (!event.target.matches("[data-revision]")) return;
    const url = new URL(location.href);
    url.searchParams.set("revision", event.target.value);
    url.searchParams.set("tab", "events");
    // Through a link, so that what follows choices inside the fragment follows this one.
    const link = Object.assign(document.createElement("a"), { href: url.href });
    link.dataset.select = "";
    event.target.after(link);
    link.click();
    link.remove();
  });
})();
