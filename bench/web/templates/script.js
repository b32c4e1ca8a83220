"use strict";
(function () {
  const root = document.documentElement;
  root.classList.add("js");

  // The theme is remembered where the browser lets a page of this kind remember something.
  const themes = document.querySelectorAll("input[name=theme]");
  try {
    const kept = document.getElementById("theme-" + localStorage.getItem("uqbench-theme"));
    if (kept) kept.checked = true;
  } catch (refused) { /* a page from a file may have no storage */ }
  themes.forEach((input) => input.addEventListener("change", () => {
    try { localStorage.setItem("uqbench-theme", input.value); } catch (refused) { /* the same */ }
  }));

  // Sorting: values are in data-v, or else the text of the cell; a row without a value stays last, whatever the direction.
  // Equal values keep the order of the page, whatever was sorted before: an address that names a column shows one order.
  const places = new WeakMap();
  function sort(header, down) {
    const row = header.parentElement, column = Array.prototype.indexOf.call(row.children, header);
    const body = header.closest("table").tBodies[0];
    const value = (line) => {
      const text = line.children[column].dataset.v ?? line.children[column].textContent.trim();
      return text === "" ? null : Number.isNaN(Number(text)) ? text : Number(text);
    };
    const sign = down ? -1 : 1;
    if (!places.has(body)) places.set(body, Array.from(body.rows));
    const lines = places.get(body).map((line) => ({ line, own: value(line) }));
    lines.sort((a, b) => {
      if (a.own === null || b.own === null) return (a.own === null) - (b.own === null);
      if (typeof a.own === "number" && typeof b.own === "number") return sign * (a.own - b.own);
      return sign * String(a.own).localeCompare(String(b.own));
    });
    body.append(...lines.map((each) => each.line));
    for (const other of row.children) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("table .sort");
    if (!button) return;
    const header = button.closest("th"), present = header.getAttribute("aria-sort");
    sort(header, present ? present === "ascending" : header.dataset.first === "descending");
  });

  // One filter above a table: rows of one metric.
  document.querySelectorAll("form[data-filter]").forEach((form) => {
    const table = document.getElementById(form.dataset.filter), status = form.nextElementSibling;
    const select = form.elements.metric;
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    select.addEventListener("change", () => {
      let count = 0;
      for (const line of table.tBodies[0].rows) {
        line.hidden = select.value !== "" && line.dataset.metric !== select.value;
        count += !line.hidden;
      }
      status.textContent = count + (count === 1 ? " row" : " rows");
    });
  });
})();
