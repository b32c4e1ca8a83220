// What a reader chose is the part of the address behind '#', so that a link to it shows the same; pages from a disk
// have no other part that a script may change. Orders come from the shared script, which marks them with aria-sort.
(function () {
  const original = new Map();
  function note(table) { if (table.tBodies.length && !original.has(table)) original.set(table, Array.from(table.tBodies[0].rows)); }
  document.querySelectorAll("table").forEach(note);
  const headers = (table) => Array.from(table.tHead.rows[0].cells).filter((cell) => cell.dataset.key);
  const write = (state) => {
    try { history.replaceState(null, "", "#" + state); } catch (refused) { /* not for pages from a file, in some browsers */ }
  };
  const read = () => new URLSearchParams(location.hash.slice(1));

  // An order is the key of its column, with a minus sign where it descends; none is the order of the page.
  function orderOf(table) {
    const header = headers(table).find((cell) => cell.hasAttribute("aria-sort"));
    return header ? (header.getAttribute("aria-sort") === "descending" ? "-" : "") + header.dataset.key : "";
  }
  function putInOrder(table, wanted) {
    if (orderOf(table) === wanted) return;
    const down = wanted.startsWith("-"), header = headers(table).find((cell) => cell.dataset.key === wanted.slice(down ? 1 : 0));
    if (!header) {
      headers(table).forEach((cell) => cell.removeAttribute("aria-sort"));
      table.tBodies[0].append(...original.get(table));
      return;
    }
    for (let turn = 0; turn < 2 && orderOf(table) !== wanted; turn += 1) header.querySelector(".sort").click();
  }

  const form = document.getElementById("views"), views = Array.from(document.querySelectorAll(".board"));
  if (!form || !views.length) {
    remember();
    return;
  }

  // The index: one view at a time. Every choice offers only what the choices before it leave.
  const FEW = 6; // columns that are shown of a table until a reader chooses
  const order = ["task", "dataset", "metric", "device"], suite = form.elements.suite;
  const here = Array.from(suite.options).find((one) => one.defaultSelected).value;
  const words = {
    dataset: (view) => view.dataset.dataset || "all datasets",
    metric: (view) => view.dataset.metricName,
    device: (view) => view.dataset.device || "all devices",
  };
  const chooser = document.getElementById("columns"), boxes = chooser.querySelector("div");
  let chosen = null, columns = null, sorting = "", restoring = false;

  function choose() {
    let left = views;
    for (const name of order) {
      const select = form.elements[name], wanted = select.value, options = new Map();
      for (const view of left) {
        if (!options.has(view.dataset[name])) options.set(view.dataset[name], (words[name] || ((v) => v.dataset[name]))(view));
      }
      select.replaceChildren(...Array.from(options, ([value, text]) => new Option(text, value)));
      if (options.has(wanted)) select.value = wanted;
      select.closest("label").hidden = name === "task" && new Set(views.map((view) => view.dataset[name])).size < 2;
      left = left.filter((view) => view.dataset[name] === select.value);
    }
    chosen = left[0];
    views.forEach((view) => view.classList.toggle("chosen", view === chosen));
  }
  // All views but the first are the text of a noscript element until they are chosen: a browser with scripts reads
  // hundreds of boards in a fraction of a second, one without them shows them all.
  function open(view) {
    const text = view.querySelector(":scope > noscript");
    if (!text) return;
    view.innerHTML = text.textContent;
    view.querySelectorAll("table").forEach(note);
  }
  function find() {
    const wanted = form.elements.find.value.trim().toLowerCase();
    let count = 0;
    for (const line of chosen.querySelector("tbody").rows) {
      line.hidden = wanted !== "" && !line.querySelector("th").textContent.toLowerCase().includes(wanted);
      count += !line.hidden;
    }
    return count;
  }
  function showColumns() {
    const table = chosen.querySelector("table"), own = headers(table).filter((cell) => cell.dataset.metric);
    chooser.hidden = own.length < 2;
    if (chooser.hidden) return;
    const present = new Set(own.map((cell) => cell.dataset.key));
    const kept = columns && columns.filter((key) => present.has(key));
    const shown = new Set(kept && kept.length ? kept : own.slice(0, FEW).map((cell) => cell.dataset.key));
    for (const cell of own) {
      const hidden = !shown.has(cell.dataset.key), place = cell.cellIndex;
      cell.hidden = hidden;
      for (const line of table.tBodies[0].rows) line.cells[place].hidden = hidden;
    }
    chooser.querySelector("summary").textContent = "Columns: " + shown.size + " of " + own.length + " metrics";
    boxes.replaceChildren(...own.map((cell) => {
      const label = document.createElement("label"), box = document.createElement("input"), text = document.createElement("span");
      box.type = "checkbox";
      box.checked = shown.has(cell.dataset.key);
      box.value = cell.dataset.key;
      text.textContent = cell.dataset.metric;
      label.append(box, text);
      return label;
    }));
  }
  function save() {
    const state = new URLSearchParams(["suite", ...order].map((name) => [name, form.elements[name].value]));
    const wanted = form.elements.find.value.trim();
    if (wanted) state.set("find", wanted);
    if (sorting) state.set("sort", sorting);
    if (columns) state.set("columns", columns.join(" "));
    write(state);
  }
  function show(announce) {
    choose();
    open(chosen);
    const count = find();
    showColumns();
    restoring = true;
    putInOrder(chosen.querySelector("table"), sorting);
    restoring = false;
    if (!announce) return;
    document.getElementById("status").textContent = count + (count === 1 ? " method, " : " methods, ") + chosen.querySelector("h2").textContent;
    save();
  }
  function restore() {
    // A link of another page names a view by its id, which also works without this script.
    const named = views.find((view) => "#" + view.id === location.hash);
    const state = named ? new URLSearchParams(order.map((name) => [name, named.dataset[name]])) : read();
    const elsewhere = Array.from(suite.options).find((one) => one.value === state.get("suite") && one.value !== here);
    if (elsewhere) {
      location.replace(elsewhere.dataset.page + "#" + state);
      return;
    }
    form.elements.find.value = state.get("find") || "";
    sorting = state.get("sort") || "";
    columns = state.has("columns") ? state.get("columns").split(" ") : null;
    choose();
    for (const name of order) {
      if (!state.has(name)) continue;
      form.elements[name].value = state.get(name);
      choose();
    }
    show(false);
  }
  document.addEventListener("click", (event) => {
    if (restoring || !event.target.closest(".board .sort")) return;
    sorting = orderOf(chosen.querySelector("table"));
    save();
  });
  boxes.addEventListener("change", (event) => {
    const ticked = Array.from(boxes.querySelectorAll("input:checked"), (box) => box.value);
    if (!ticked.length) event.target.checked = true; // one stays
    columns = ticked.length ? ticked : [event.target.value];
    const key = event.target.value;
    show(true);
    Array.from(boxes.querySelectorAll("input")).find((box) => box.value === key).focus();
  });
  // Every suite has a page of its own; what was searched for is kept.
  suite.closest("label").hidden = suite.options.length < 2;
  suite.addEventListener("change", () => {
    const state = new URLSearchParams([["suite", suite.value]]), wanted = form.elements.find.value.trim();
    if (wanted) state.set("find", wanted);
    location.href = suite.selectedOptions[0].dataset.page + "#" + state;
    suite.value = here; // for a reader who comes back
  });
  suite.value = here; // a browser may have kept another one
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  order.forEach((name) => form.elements[name].addEventListener("change", () => show(true)));
  form.elements.find.addEventListener("input", () => show(true));
  window.addEventListener("hashchange", restore);
  restore();

  // Other pages: the order of their first table with a name, and the metric above it.
  function remember() {
    const table = document.querySelector("table[id]"), filter = document.querySelector("form[data-filter]");
    if (!table) return;
    function keep() {
      const state = new URLSearchParams();
      if (filter && filter.elements.metric.value) state.set("metric", filter.elements.metric.value);
      if (orderOf(table)) state.set("sort", orderOf(table));
      write(state);
    }
    const state = read();
    if (filter && state.get("metric")) {
      filter.elements.metric.value = state.get("metric");
      filter.elements.metric.dispatchEvent(new Event("change"));
    }
    if (state.get("sort")) putInOrder(table, state.get("sort"));
    document.addEventListener("click", (event) => { if (table.contains(event.target.closest(".sort"))) keep(); }); // after the sorting
    if (filter) filter.elements.metric.addEventListener("change", keep);
  }
})();
