"use strict";
(function () {
  // Everything here adds to a page that is whole without it: sorting, saving as CSV, light and dark.
  function button(text, act) {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = text;
    made.addEventListener("click", act);
    return made;
  }

  function theme() {
    const root = document.documentElement;
    const dark = function () {
      const own = root.dataset.theme;
      return own ? own === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
    };
    const toggle = button("", function () {
      root.dataset.theme = dark() ? "light" : "dark";
      name();
    });
    const name = function () { toggle.textContent = dark() ? "Light" : "Dark"; };
    name();
    toggle.id = "theme";
    document.getElementById("tools").append(toggle);
  }

  function key(row, column) {
    const cell = row.cells[column];
    const raw = cell.dataset.sort;
    if (raw === undefined) { return cell.textContent.trim() === "–" ? null : cell.textContent.trim(); }
    const number = Number(raw);
    return raw !== "" && !Number.isNaN(number) ? number : raw;
  }

  function compare(one, two) {
    if (typeof one === "number" && typeof two === "number") { return one - two; }
    return String(one).localeCompare(String(two), "en", { numeric: true });
  }

  function sortable(table) {
    const body = table.tBodies[0];
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach(function (head, column) {
      const made = button(head.textContent, function () {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = Array.from(body.rows).map(function (row) { return [key(row, column), row]; });
        rows.sort(function (a, b) {
          // Cells without a value stay last in both directions.
          if (a[0] === null || b[0] === null) { return (a[0] === null) - (b[0] === null); }
          return down ? compare(b[0], a[0]) : compare(a[0], b[0]);
        });
        rows.forEach(function (pair) { body.append(pair[1]); });
      });
      head.replaceChildren(made);
    });
  }

  function savable(source) {
    const save = button("Save as CSV", function () {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([source.textContent], { type: "text/csv" }));
      link.download = source.dataset.file;
      link.click();
      setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
    });
    save.className = "save";
    save.setAttribute("aria-label", "Save as CSV: " + source.dataset.file);
    source.after(save);
  }

  theme();
  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelectorAll("pre.csv").forEach(savable);
})();
