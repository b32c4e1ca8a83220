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
  function sort(header, down) {
    const row = header.parentElement, column = Array.prototype.indexOf.call(row.children, header);
    const body = header.closest("table").tBodies[0];
    const value = (line) => {
      const text = line.children[column].dataset.v ?? line.children[column].textContent.trim();
      return text === "" ? null : Number.isNaN(Number(text)) ? text : Number(text);
    };
    const sign = down ? -1 : 1;
    const lines = Array.from(body.rows).map((line) => ({ line, own: value(line) }));
    lines.sort((a, b) => {
      if (a.own === null || b.own === null) return (a.own === null) - (b.own === null);
      if (typeof a.own === "number" && typeof b.own === "number") return sign * (a.own - b.own);
      return sign * String(a.own).localeCompare(String(b.own));
    });
    body.append(...lines.map((each) => each.line));
    for (const other of row.children) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
  }
  document.querySelectorAll("table .sort").forEach((button) => button.addEventListener("click", () => {
    const header = button.closest("th");
    sort(header, header.getAttribute("aria-sort") === "ascending");
  }));

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

  // The index: one board at a time. Every choice offers only what the choices before it leave.
  const form = document.getElementById("choose");
  const boards = Array.from(document.querySelectorAll(".board"));
  if (!form || !boards.length) return;
  const order = ["suite", "task", "dataset", "metric", "device"];
  const words = {
    dataset: (board) => board.dataset.dataset || "all datasets",
    metric: (board) => board.dataset.metricName,
    device: (board) => board.dataset.device || "all devices",
  };
  function show(announce) {
    let left = boards;
    for (const name of order) {
      const select = form.elements[name], wanted = select.value, options = new Map();
      for (const board of left) {
        if (!options.has(board.dataset[name])) options.set(board.dataset[name], (words[name] || ((b) => b.dataset[name]))(board));
      }
      select.replaceChildren(...Array.from(options, ([value, text]) => new Option(text, value)));
      if (options.has(wanted)) select.value = wanted;
      select.closest("label").hidden = (name === "suite" || name === "task") && options.size < 2 &&
        new Set(boards.map((board) => board.dataset[name])).size < 2;
      left = left.filter((board) => board.dataset[name] === select.value);
    }
    const chosen = left[0], find = form.elements.find.value.trim().toLowerCase();
    boards.forEach((board) => board.classList.toggle("chosen", board === chosen));
    let count = 0;
    for (const line of chosen.querySelector("tbody").rows) {
      line.hidden = find !== "" && !line.dataset.name.toLowerCase().includes(find);
      count += !line.hidden;
    }
    if (!announce) return;
    document.getElementById("status").textContent = count + (count === 1 ? " method, " : " methods, ") + chosen.querySelector("h2").textContent;
    const state = new URLSearchParams(order.map((name) => [name, form.elements[name].value]));
    try { history.replaceState(null, "", "#" + state); } catch (refused) { /* not for pages from a file, in some browsers */ }
  }
  function restore() {
    const state = new URLSearchParams(location.hash.slice(1));
    show(false);
    for (const name of order) {
      if (!state.has(name)) continue;
      form.elements[name].value = state.get(name);
      show(false);
    }
  }
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  order.forEach((name) => form.elements[name].addEventListener("change", () => show(true)));
  form.elements.find.addEventListener("input", () => show(true));
  window.addEventListener("hashchange", restore);
  restore();
})();
