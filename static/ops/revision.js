// The slider of revisions: moving it shows its number, releasing it shows the run at that revision. Without this script
// a button does.
(() => {
  "use strict";

  document.addEventListener("input", (event) => {
    if (!event.target.matches("[data-revision]")) return;
    const output = event.target.form.querySelector("output");
    output.textContent = output.textContent.replace(/\d+/, event.target.value);
  });

  document.addEventListener("change", (event) => {
    if (!event.target.matches("[data-revision]")) return;
    const url = new URL(location.href);
    url.searchParams.set("revision", event.target.value);
    // A click on a link, so that live.js loads the fragment.
    const link = Object.assign(document.createElement("a"), { href: url.href });
    link.dataset.select = "";
    event.target.after(link);
    link.click();
    link.remove();
  });
})();
