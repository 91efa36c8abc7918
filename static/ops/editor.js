// Comforts of a JSON textarea: line numbers, Tab and Enter that keep the indentation, formatting, the place of a fault.
(() => {
  "use strict";

  const place = (text, offset) => {
    const before = text.slice(0, offset).split("\n");
    return `line ${before.length}, column ${before[before.length - 1].length + 1}`;
  };

  // Browsers tell the place of a fault in words of their own; where one does not, its words stand alone.
  const fault = (text) => {
    try {
      JSON.parse(text);
      return "";
    } catch (error) {
      const found = /position (\d+)/.exec(error.message);
      const words = error.message.replace(/ in JSON at position.*| \(line.*| at position.*/, "");
      return found ? `${words} at ${place(text, Number(found[1]))}` : words;
    }
  };

  // Only the space between tokens changes: what parsing would lose, such as the digits of long numbers, stays.
  const reindented = (text) => {
    const tokens = text.match(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g) || [];
    let depth = 0;
    const line = () => `\n${"  ".repeat(depth)}`;
    return tokens.map((token, place) => {
      const before = tokens[place - 1];
      if (token === "}" || token === "]") {
        depth -= 1;
        return before === "{" || before === "[" ? token : line() + token;
      }
      const lead = before === "{" || before === "[" || before === "," ? line() : before === ":" ? " " : "";
      if (token === "{" || token === "[") depth += 1;
      return lead + token;
    }).join("");
  };

  const element = (name, attributes, text = "") =>
    Object.assign(document.createElement(name), { textContent: text, ...attributes });

  const insert = (area, text) => {
    // execCommand keeps the browser's own undo; setRangeText is for those that have dropped it.
    if (!document.execCommand("insertText", false, text)) area.setRangeText(text, area.selectionStart, area.selectionEnd, "end");
  };

  const selectedLines = (area) => {
    const start = area.value.lastIndexOf("\n", area.selectionStart - 1) + 1;
    const end = area.value.indexOf("\n", Math.max(area.selectionEnd - 1, start));
    return [start, end < 0 ? area.value.length : end];
  };

  const shift = (area, change) => {
    const [start, end] = selectedLines(area);
    const changed = area.value.slice(start, end).split("\n").map(change).join("\n");
    area.setSelectionRange(start, end);
    insert(area, changed);
    area.setSelectionRange(start, start + changed.length);
  };

  const goTo = (area, line) => {
    const lines = area.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    area.focus();
    area.setSelectionRange(start, start + (lines[line - 1] || "").length);
    const height = area.scrollHeight / lines.length;
    area.scrollTop = Math.max(0, (line - 6) * height);
  };

  const comfortable = (box) => {
    const area = box.querySelector("textarea");
    const gutter = element("div", { className: "gutter", ariaHidden: "true" });
    const bar = element("div", { className: "editor-bar" });
    const count = element("span", { className: "quiet" });
    const verdict = element("span", { className: "verdict" });
    const format = element("button", { type: "button", className: "button plain" }, "Format");
    bar.append(format, verdict, count);
    const frame = element("div", { className: "frame" });
    area.replaceWith(frame);
    frame.append(gutter, area);
    box.append(bar);
    box.classList.add("comfortable");

    let leaves = false; // Escape lets the next Tab leave the field, so that the keyboard is never caught in it.
    let numbered = 0;
    const show = () => {
      const lines = area.value.split("\n").length;
      if (lines !== numbered) gutter.textContent = Array.from({ length: lines }, (_, n) => n + 1).join("\n");
      numbered = lines;
      count.textContent = `${lines} lines, ${area.value.length.toLocaleString("en")} characters`;
      const wrong = fault(area.value);
      verdict.textContent = wrong || "well-formed";
      verdict.classList.toggle("wrong", Boolean(wrong));
      format.disabled = Boolean(wrong);
    };
    area.addEventListener("input", show);
    area.addEventListener("scroll", () => { gutter.scrollTop = area.scrollTop; });
    format.addEventListener("click", () => {
      area.focus();
      area.select();
      insert(area, reindented(area.value));
      area.setSelectionRange(0, 0);
      area.scrollTop = 0;
    });
    area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { leaves = true; return; }
      if (event.key === "Tab" && !leaves) {
        event.preventDefault();
        if (event.shiftKey) shift(area, (line) => line.replace(/^ {1,2}|^\t/, ""));
        else if (area.selectionStart === area.selectionEnd) insert(area, "  ");
        else shift(area, (line) => `  ${line}`);
      }
      if (event.key === "Enter" && !event.ctrlKey && !event.metaKey) {
        const start = area.value.lastIndexOf("\n", area.selectionStart - 1) + 1;
        const line = area.value.slice(start, area.selectionStart);
        event.preventDefault();
        insert(area, `\n${/^\s*/.exec(line)[0]}${/[{[]\s*$/.test(line) ? "  " : ""}`);
      }
      if (event.key !== "Shift") leaves = false;
    });
    area.closest("form").addEventListener("click", (event) => {
      const link = event.target.closest("[data-line]");
      if (!link) return;
      event.preventDefault();
      goTo(area, Number(link.dataset.line));
    });
    show();
  };

  for (const box of document.querySelectorAll("[data-editor]")) comfortable(box);
})();
