"use strict";
// Conveniences of a report: every word and number is in the page without them. Tables get buttons that sort, the page gets
// a box that shows some methods only, and a table of several metrics a box for each of them. Nothing is computed here:
// marks, places and corrected p-values are those of all methods, whatever is shown.
(function () {
  const NUMBER = /^[-+]?(\d[\d,]*\.?\d*|\.\d+)(e[-+]?\d+)?/i;
  const MOST_TOGGLED = 12;

  function order(text, column) {
    const plain = text.trim(), found = column > 0 && NUMBER.exec(plain.replace(/^</, ""));
    if (found) return found[0].replaceAll(",", "");
    return plain === "–" ? "" : plain;
  }

  // Header cells become buttons; the values of a column are read when it is sorted for the first time. The page itself gives
  // means over fewer repeats an empty value: they stay last, in their order.
  document.querySelectorAll("main table").forEach((table) => {
    if (table.tBodies[0].rows.length < 2) return;
    Array.from(table.tHead.rows[0].cells).forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => {
        for (const line of table.tBodies[0].rows) {
          const cell = line.cells[column];
          if (cell.dataset.v === undefined) cell.dataset.v = order(cell.textContent, column);
        }
      });
    });
  });

  // What goes on to the right says so in words, while it does; it is measured whenever it or its content changes its size.
  const notes = new Map();
  const observer = new ResizeObserver((entries) => {
    const regions = new Set(entries.map((entry) => entry.target.closest(".scroll")));
    const wide = Array.from(regions, (region) => [region, region.scrollWidth > region.clientWidth + 1]); // before any change
    wide.forEach(([region, goesOn]) => {
      const hint = region.closest("[data-columns]") ? ", or hide columns below it." : ".";
      notes.get(region).textContent = goesOn ? "Wider than the page: scroll it to the right" + hint : "";
      notes.get(region).hidden = !goesOn;
    });
  });
  document.querySelectorAll("main .scroll").forEach((region) => {
    const note = document.createElement("p");
    note.className = "beyond";
    note.hidden = true;
    region.before(note);
    notes.set(region, note);
    observer.observe(region);
    observer.observe(region.firstElementChild);
  });

  // Methods: a table that names them in a column, and points of figures whose words begin with one.
  const named = Array.from(document.querySelectorAll("main table")).flatMap((table) => {
    const column = Array.from(table.tHead.rows[0].cells).findIndex((cell) => ["method", "variant"].includes(cell.textContent.trim()));
    return column < 0 ? [] : Array.from(table.tBodies[0].rows, (line) => ({ line, name: line.cells[column].textContent.replace(/\s*\(baseline\)\s*$/, "").trim() }));
  });
  const names = new Set(named.map((one) => one.name));
  const points = Array.from(document.querySelectorAll("main svg title"), (title) => ({
    point: title.parentElement, name: title.textContent.split(": ")[0],
  }));
  // Labels of figures are titles: with capitals, spaces and brackets where names have hyphens.
  const bare = (text) => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  const byTitle = new Map(Array.from(names, (name) => [bare(name), name]));
  const labels = Array.from(document.querySelectorAll("main svg text")).flatMap((text) => {
    const name = byTitle.get(bare(text.textContent));
    return name === undefined ? [] : [{ text, name }];
  });
  const form = document.getElementById("methods");
  if (form && names.size > 1) {
    const status = document.getElementById("methods-status");
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    form.elements.find.addEventListener("input", () => {
      const wanted = form.elements.find.value.toLowerCase().split(",").map((word) => word.trim()).filter(Boolean);
      const kept = (name) => !wanted.length || wanted.some((word) => name.toLowerCase().includes(word));
      named.forEach((one) => { one.line.hidden = !kept(one.name); });
      points.forEach((one) => one.point.classList.toggle("faded", !kept(one.name)));
      labels.forEach((one) => one.text.classList.toggle("faded", !kept(one.name)));
      const count = Array.from(names).filter(kept).length;
      status.textContent = wanted.length ? count + " of " + names.size + " methods; tests are those of all" : "";
    });
  }

  // Metrics: the tables of several metrics have a box for each column, to hide it.
  document.querySelectorAll("main [data-columns]").forEach((block) => {
    const table = block.querySelector("table"), headers = Array.from(table.tHead.rows[0].cells).slice(1);
    if (headers.length < 3 || headers.length > MOST_TOGGLED) return;
    const fold = document.createElement("details"), summary = document.createElement("summary");
    const boxes = document.createElement("fieldset"), legend = document.createElement("legend");
    fold.className = "fold";
    summary.textContent = "Columns";
    boxes.className = "columns";
    legend.textContent = "Columns of the table";
    boxes.append(legend);
    headers.forEach((header, number) => {
      const label = document.createElement("label"), box = document.createElement("input");
      box.type = "checkbox";
      box.checked = true;
      label.append(box, " " + header.textContent.trim());
      box.addEventListener("change", () => {
        for (const line of table.rows) line.cells[number + 1].hidden = !box.checked;
      });
      boxes.append(label);
    });
    fold.append(summary, boxes);
    block.append(fold);
  });
})();
