"use strict";
(function () {
  // Everything here adds to a page that is whole without it: sorting, choosing, saving as CSV, light and dark. What a
  // reader chose stands in the address, so that a link shows what its sender saw.
  const state = new URLSearchParams();
  const appliers = [];

  function made(tag, settings, ...inside) {
    const one = Object.assign(document.createElement(tag), settings);
    one.append(...inside);
    return one;
  }

  function button(text, act) {
    const one = made("button", { type: "button", textContent: text });
    one.addEventListener("click", act);
    return one;
  }

  function keep(name, value) {
    if (value === null || value === "") { state.delete(name); } else { state.set(name, value); }
    history.replaceState(null, "", "#~" + state.toString());
  }

  function restore() {
    if (!location.hash.startsWith("#~")) { return; }
    const given = new URLSearchParams(location.hash.slice(2));
    Array.from(state.keys()).forEach(function (name) { state.delete(name); });
    given.forEach(function (value, name) { state.set(name, value); });
    appliers.forEach(function (apply) { apply(); });
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

  function short(number) {
    return number.toLocaleString("en", { maximumSignificantDigits: 3, notation: "compact" });
  }

  function compare(one, two) {
    if (typeof one === "number" && typeof two === "number") { return one - two; }
    return String(one).localeCompare(String(two), "en", { numeric: true });
  }

  function sortable(table) {
    const body = table.tBodies[0];
    const heads = Array.from(table.tHead.rows[0].cells);
    const names = heads.map(function (head) { return head.textContent; });
    const id = "sort." + table.parentElement.parentElement.id;

    // Numbers begin with the better end: the largest, or the smallest of a p-value and of a metric marked ↓.
    function begins(column) {
      const numbers = Array.from(body.rows).some(function (row) { return typeof key(row, column) === "number"; });
      return numbers && !/↓|^p\b/.test(names[column]) ? "descending" : "ascending";
    }

    function sort(column, direction) {
      heads.forEach(function (other) { other.removeAttribute("aria-sort"); });
      heads[column].setAttribute("aria-sort", direction);
      const down = direction === "descending";
      const rows = Array.from(body.rows).map(function (row) { return [key(row, column), row]; });
      rows.sort(function (a, b) {
        // Cells without a value stay last in both directions.
        if (a[0] === null || b[0] === null) { return (a[0] === null) - (b[0] === null); }
        return down ? compare(b[0], a[0]) : compare(a[0], b[0]);
      });
      body.append(...rows.map(function (pair) { return pair[1]; }));
    }

    function choose(column) {
      const now = heads[column].getAttribute("aria-sort");
      const direction = now === null ? begins(column) : now === "ascending" ? "descending" : "ascending";
      sort(column, direction);
      keep(id, column + "." + direction);
    }

    heads.forEach(function (head, column) {
      head.replaceChildren(button(names[column], function () { choose(column); }));
    });
    appliers.push(function () {
      const [column, direction] = (state.get(id) || "").split(".");
      if (heads[column] && ["ascending", "descending"].includes(direction)) { sort(Number(column), direction); }
    });
    if (!table.classList.contains("stacked") || body.rows.length < 2) { return; }
    // Where each row is a card, the heads are hidden.
    const select = made("select", {}, made("option", { value: "", textContent: "as given" }),
      ...names.map(function (name, i) { return made("option", { value: String(i), textContent: name }); }));
    select.addEventListener("change", function () { if (select.value) { choose(Number(select.value)); } });
    const turn = button("Turn round", function () { if (select.value) { choose(Number(select.value)); } });
    table.parentElement.before(made("div", { className: "controls sorter" }, made("label", {}, "Sort by ", select), turn));
  }

  // The leaderboard: which metrics, at which k, and which models.
  function leaderboard(table) {
    const heads = Array.from(table.tHead.rows[0].cells);
    const chosen = heads.filter(function (head) { return head.dataset.metric; });
    const unique = function (name) {
      return Array.from(new Set(chosen.map(function (head) { return head.dataset[name]; }))).filter(Boolean);
    };
    const metrics = unique("metric");
    const cutoffs = unique("k").sort(function (a, b) { return a - b; });
    const controls = made("div", { className: "controls" });
    const given = heads.map(function (head) { return "off" in head.dataset; });

    const find = made("input", { type: "search", placeholder: "part of a name", ariaLabel: "Models with" });
    find.addEventListener("input", function () { keep("model", find.value); apply(); });
    const none = made("p", { className: "note", role: "status" });
    const at = made("select", { ariaLabel: "k" }, made("option", { value: "", textContent: "as given" }),
      ...cutoffs.map(function (k) { return made("option", { value: k, textContent: k }); }));
    at.addEventListener("change", function () { keep("k", at.value); apply(); });
    const boxes = metrics.map(function (name) {
      const box = made("input", { type: "checkbox", checked: true, value: name });
      box.addEventListener("change", function () {
        const off = boxes.filter(function (one) { return !one.checked; }).map(function (one) { return one.value; });
        keep("without", off.join(","));
        apply();
      });
      return box;
    });

    function apply() {
      find.value = state.get("model") || "";
      at.value = state.get("k") || "";
      const off = (state.get("without") || "").split(",");
      boxes.forEach(function (box) { box.checked = !off.includes(box.value); });
      heads.forEach(function (head, i) {
        if (!head.dataset.metric) { return; }
        const hidden = off.includes(head.dataset.metric) ||
          (at.value && head.dataset.k ? head.dataset.k !== at.value : given[i]);
        [head].concat(Array.from(table.tBodies[0].rows, function (row) { return row.cells[i]; }))
          .forEach(function (cell) { cell.hidden = hidden; });
      });
      const wanted = find.value.toLowerCase();
      document.querySelectorAll("#leaderboard tbody tr").forEach(function (row) {
        row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
      });
      const found = Array.from(table.tBodies[0].rows).some(function (row) { return !row.hidden; });
      none.textContent = found ? "" : "No model has “" + find.value + "” in its name.";
    }

    if (table.tBodies[0].rows.length > 3) { controls.append(made("label", {}, "Models with ", find), none); }
    if (cutoffs.length > 1) { controls.append(made("label", {}, "k ", at)); }
    if (metrics.length > 1) {
      const each = boxes.map(function (box) { return made("label", {}, box, " " + box.value); });
      controls.append(made("fieldset", {}, made("legend", { textContent: "Metrics" }), ...each));
    }
    if (controls.childElementCount) { table.parentElement.before(controls); }
    appliers.push(apply);
    apply();
    axes(table, chosen);
  }

  // Two metrics of a reader's choice against each other, one point a model.
  function axes(table, heads) {
    const place = document.getElementById("trade-offs") || document.getElementById("leaderboard");
    if (table.tBodies[0].rows.length < 2 || heads.length < 2) { return; }
    const names = heads.map(function (head) { return head.textContent; });
    const pick = function (name) {
      const one = made("select", { ariaLabel: name === "x" ? "across" : "up" }, ...names.map(function (text, i) {
        return made("option", { value: String(i), textContent: text });
      }));
      one.addEventListener("change", function () { keep(name, one.value); draw(); });
      return one;
    };
    const across = pick("x"), up = pick("y");
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.setAttribute("viewBox", "0 0 340 250");
    svg.setAttribute("class", "picture");
    svg.setAttribute("role", "img");

    function shape(tag, settings, text) {
      const one = document.createElementNS("http://www.w3.org/2000/svg", tag);
      Object.keys(settings).forEach(function (name) { one.setAttribute(name, settings[name]); });
      if (text) { one.textContent = text; }
      svg.append(one);
      return one;
    }

    function draw() {
      const folded = svg.closest("details:not([open])"); // hidden, it would not know the size of its texts
      if (folded) { folded.addEventListener("toggle", draw, { once: true }); return; }
      const shown = heads.map(function (head) { return !head.hidden; });
      across.value = state.get("x") || String(shown.lastIndexOf(true));
      up.value = state.get("y") || String(shown.indexOf(true));
      const columns = [across, up].map(function (one) { return heads[Number(one.value)].cellIndex; });
      const points = Array.from(table.tBodies[0].rows, function (row) {
        return [row.cells[0].textContent.trim()].concat(columns.map(function (i) { return key(row, i); }));
      }).filter(function (point) { return typeof point[1] === "number" && typeof point[2] === "number"; });
      svg.replaceChildren();
      svg.setAttribute("aria-label", names[up.value] + " against " + names[across.value]);
      const span = [1, 2].map(function (i) {
        const all = points.map(function (point) { return point[i]; });
        const low = Math.min(...all), high = Math.max(...all);
        return [low, high > low ? high - low : 1];
      });
      const labels = [];
      shape("path", { d: "M54 20V214H330", fill: "none", class: "stroke-muted" });
      points.forEach(function (point) {
        const x = 68 + 248 * (point[1] - span[0][0]) / span[0][1], y = 202 - 168 * (point[2] - span[1][0]) / span[1][1];
        const dot = shape("circle", { cx: x, cy: y, r: 5, class: "chosen" });
        const title = document.createElementNS("http://www.w3.org/2000/svg", "title");
        title.textContent = point[0] + ": " + names[across.value] + " " + short(point[1]) + ", " +
          names[up.value] + " " + short(point[2]);
        dot.append(title);
        if (points.length <= 8) {
          const left = x > 190;
          labels.push(shape("text", { x: x + (left ? -9 : 9), y: y - 6, class: "chosen-text", "text-anchor": left ? "end" : "start" },
            point[0].length > 24 ? point[0].slice(0, 23) + "…" : point[0]));
        }
      });
      labels.reduce(function (kept, label) { // a name that would lie on another, or be cut, is said by its point alone
        const box = label.getBBox();
        const clear = box.x >= 0 && box.x + box.width <= 340 && kept.every(function (one) {
          return box.x > one.x + one.width || one.x > box.x + box.width || box.y > one.y + one.height || one.y > box.y + box.height;
        });
        if (clear) { kept.push(box); } else { label.remove(); }
        return kept;
      }, []);
      [[54, 230, span[0][0], "start"], [330, 230, span[0][0] + span[0][1], "end"], [48, 206, span[1][0], "end"],
        [48, 38, span[1][0] + span[1][1], "end"]].forEach(function (tick) {
        shape("text", { x: tick[0], y: tick[1], class: "chosen-text", "text-anchor": tick[3] }, short(tick[2]));
      });
      shape("text", { x: 192, y: 246, class: "chosen-text", "text-anchor": "middle" }, names[across.value]);
      shape("text", { x: 54, y: 13, class: "chosen-text" }, names[up.value]);
    }

    const figure = made("figure", { className: "chooser" }, made("h3", { textContent: "Metrics of your choice" }),
      made("div", { className: "controls" }, made("label", {}, "across ", across), made("label", {}, "up ", up)), svg);
    const drawings = place.querySelector(".drawings") || made("div", { className: "drawings" });
    drawings.append(figure);
    if (!drawings.isConnected) { place.append(drawings); }
    draw();
    appliers.push(draw);
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

  // On a phone, what stands below the verdict and the leaderboard is folded: a page of many screens is not read there.
  function foldable() {
    const narrow = window.matchMedia("screen and (max-width: 44rem)");
    const all = Array.from(document.querySelectorAll("main > section"));
    const first = all.findIndex(function (one) { return one.id === (board ? "leaderboard" : "verdict"); });
    const folds = new Map();

    function fold(section) {
      const sorted = Array.from(state.keys()).some(function (name) { return name.startsWith("sort." + section.id + "-"); });
      const details = made("details", { className: "fold", open: sorted }, made("summary", {}, section.querySelector("h2")));
      details.append(...section.childNodes);
      section.append(details);
      folds.set(section, details);
    }

    function unfold(details, section) {
      section.replaceChildren(details.querySelector("h2"), ...Array.from(details.childNodes).slice(1));
      folds.delete(section);
    }

    function fit() {
      if (!narrow.matches) { folds.forEach(unfold); return; }
      all.slice(first + 1).filter(function (one) { return !folds.has(one) && one.offsetHeight > 400; }).forEach(fold);
    }

    function show() {
      const details = folds.get(document.getElementById(location.hash.slice(1)));
      if (details) { details.open = true; }
    }

    fit();
    show();
    narrow.addEventListener("change", fit);
    window.addEventListener("hashchange", show);
    document.querySelectorAll("nav a").forEach(function (link) { // a second click leaves the address as it is
      link.addEventListener("click", function () { setTimeout(show); });
    });
  }

  // Paper shows the tables that are folded on a screen.
  function printable() {
    let opened = [];
    window.addEventListener("beforeprint", function () {
      opened = Array.from(document.querySelectorAll("details:not([open])")).filter(function (one) {
        return one.matches(".fold") || one.querySelector("table");
      });
      opened.forEach(function (one) { one.open = true; });
    });
    window.addEventListener("afterprint", function () { opened.forEach(function (one) { one.open = false; }); });
  }

  theme();
  const board = document.querySelector("#leaderboard table");
  if (board) { leaderboard(board); }
  document.querySelectorAll("table.sortable").forEach(sortable);
  document.querySelectorAll("pre.csv").forEach(savable);
  window.addEventListener("hashchange", restore);
  restore();
  foldable();
  printable();
})();
