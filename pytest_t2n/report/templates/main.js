// Filters, their state in the address, and what connects the parts.
const FIELDS = { q: "f-q", suite: "f-suite", op: "f-op", dtype: "f-dtype", stage: "f-stage", level: "f-level", in: "f-in", sort: "f-sort" };

const start = (data) => {
  const field = (name) => byId(FIELDS[name]);
  const pressed = (id) => byId(id).getAttribute("aria-pressed") === "true";
  const press = (button, on) => button.setAttribute("aria-pressed", String(on));
  const options = (name, values) => field(name).append(...values.map(([value, text]) => element("option", { value }, text)));
  const plain = (values) => values.filter(Boolean).sort().map((value) => [value, value]);
  const cells = data.rows.flatMap((row) => row.cells.filter(Boolean));
  const occurring = (words, read) => words.filter((word) => cells.some((cell) => read(cell) === word)).map((word) => [word, word]);
  options("suite", plain(data.suites));
  options("dtype", plain(data.dtypes));
  options("stage", occurring(data.stages, (cell) => cell.status === "pass" ? "" : cell.stage));
  options("level", occurring(data.levels, (cell) => cell.level));
  options("in", data.columns.map((column, index) => [String(index), column.title]));
  options("sort", data.columns.map((column, index) => [String(index), `worst first in ${column.title}`]));
  byId("ops").append(...plain(data.ops).map(([value]) => element("option", { value })));

  const counts = groupBy(cells, (cell) => cell.status);
  const chips = data.statuses.filter((status) => counts.has(status)).map((status) => {
    const chip = element("button", { type: "button", "aria-pressed": "false", "data-status": status }, element("i", { class: `s-${status}` }), `${status.replace("_", " ")} `, element("b", {}, String(counts.get(status).length)));
    chip.addEventListener("click", () => { press(chip, chip.getAttribute("aria-pressed") !== "true"); apply(); });
    return chip;
  });
  byId("f-status").append(...chips);
  const statuses = () => chips.filter((chip) => chip.getAttribute("aria-pressed") === "true").map((chip) => chip.dataset.status);
  let cause = "";
  let opener = null;

  const open = (row, column, from) => { opener = from || null; evidence.open(row, column); };
  const grid = new Grid(data, open);
  const evidence = new Evidence(data, () => remember(), (row, column) => {
    if (opener && opener.isConnected && !grid.body.contains(opener)) opener.focus();
    else grid.focus(row, column);
  });
  const changes = new Changes(data, open, () => remember());

  const fits = () => {
    const words = field("q").value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = new Set(statuses());
    const [suite, op, dtype, stage, level, inside] = ["suite", "op", "dtype", "stage", "level", "in"].map((name) => field(name).value.trim());
    const [differs, surprise] = [pressed("f-differs"), pressed("f-surprise")];
    const number = cause ? data.causes.findIndex((one) => one.key === cause) + 1 : 0;
    // Of one cell, all that is said of cells must hold.
    const cellFits = (cell) => cell && (!wanted.size || wanted.has(cell.status)) && (!stage || (cell.stage === stage && cell.status !== "pass")) &&
      (!level || cell.level === level) && (!surprise || cell.surprise) && (!cause || cell.cause === number);
    const ofCells = wanted.size || stage || level || surprise || cause || inside;
    return (row) => words.every((word) => row.words.includes(word)) && (!suite || row.suite === suite) && (!dtype || row.dtype === dtype) &&
      (!op || row.ops.some((one) => one === op) || row.ops.some((one) => one.includes(op) && !data.ops.includes(op))) && (!differs || row.differs) &&
      (!ofCells || (inside ? cellFits(row.cells[Number(inside)]) : row.cells.some(cellFits)));
  };

  const apply = () => {
    const found = data.rows.filter(fits());
    grid.scroller.scrollTop = 0;
    grid.show(found, field("sort").value);
    byId("shown").textContent = found.length === data.rows.length ? plural(found.length, "case") : `${found.length} of ${plural(data.rows.length, "case")}`;
    byId("f-cause").hidden = !cause;
    byId("f-cause").textContent = cause ? `cause ${cause.slice(0, 12)} ×` : "";
    remember();
    byId("f-reset").hidden = ![...state().keys()].some((key) => !["sort", "before", "after", "cell", "version", "fold"].includes(key));
  };

  const state = () => {
    const found = new URLSearchParams();
    for (const name of Object.keys(FIELDS)) if (field(name).value) found.set(name, field(name).value);
    if (statuses().length) found.set("status", statuses().join(","));
    if (pressed("f-differs")) found.set("differs", "1");
    if (pressed("f-surprise")) found.set("unexpected", "1");
    if (cause) found.set("cause", cause);
    if (grid.folded.size) found.set("fold", [...grid.folded].join(","));
    if (!changes.isUsual) { found.set("before", changes.before.value); found.set("after", changes.after.value); }
    if (evidence.shown) { found.set("cell", evidence.shown.row.id); found.set("version", data.columns[evidence.shown.column].title); }
    return found;
  };
  const remember = () => {
    const wanted = state().toString();
    if (location.hash.slice(1) !== wanted) history.replaceState(null, "", wanted ? `#${wanted}` : location.pathname + location.search);
  };
  const restore = () => {
    const given = new URLSearchParams(location.hash.slice(1));
    for (const name of Object.keys(FIELDS)) field(name).value = given.get(name) || "";
    for (const name of Object.keys(FIELDS)) if (field(name).tagName === "SELECT" && field(name).selectedIndex < 0) field(name).value = "";
    const wanted = new Set((given.get("status") || "").split(","));
    for (const chip of chips) press(chip, wanted.has(chip.dataset.status));
    press(byId("f-differs"), given.has("differs"));
    press(byId("f-surprise"), given.has("unexpected"));
    cause = given.get("cause") || "";
    grid.folded = new Set((given.get("fold") || "").split(",").filter((suite) => data.suites.includes(suite)));
    changes.set(given.get("before"), given.get("after"));
    const row = data.rows.find((one) => one.id === given.get("cell"));
    const column = data.columns.findIndex((one) => one.title === given.get("version"));
    apply();
    if (row && column >= 0) evidence.open(row, column, { focus: false });
    else if (evidence.shown) evidence.close();
  };

  grid.onSort = (key) => { field("sort").value = key; apply(); };
  grid.onFold = remember;
  const showCause = (key) => { cause = key; apply(); byId("matrix-title").scrollIntoView(); };
  evidence.onCause = showCause;
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("input", apply);
  for (const id of ["f-differs", "f-surprise"]) byId(id).addEventListener("click", () => { press(byId(id), !pressed(id)); apply(); });
  byId("f-more").addEventListener("click", () => byId("f-more").setAttribute("aria-expanded", String(byId("f-more").getAttribute("aria-expanded") !== "true")));
  byId("f-cause").addEventListener("click", () => { cause = ""; apply(); });
  byId("f-reset").addEventListener("click", () => {
    for (const name of Object.keys(FIELDS)) if (name !== "sort") field(name).value = "";
    for (const button of [...chips, byId("f-differs"), byId("f-surprise")]) press(button, false);
    cause = "";
    apply();
    field("q").focus();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-cause], [data-op]");
    if (!link) return;
    if (link.dataset.cause) return showCause(link.dataset.cause);
    field("op").value = link.dataset.op;
    apply();
    byId("matrix-title").scrollIntoView();
  });
  // The menu scrolls, and leaves the address to the filters.
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#"]');
    if (!link) return;
    event.preventDefault();
    const title = byId(link.hash.slice(1));
    title.scrollIntoView();
    title.focus({ preventScroll: true });
  });
  addEventListener("hashchange", restore);
  restore();
};

fadeEdges(document);
unpack("data").then((data) => {
  start(readGrid(data));
  document.documentElement.dataset.ready = "1";
}).catch((problem) => {
  byId("trouble").hidden = false;
  byId("trouble").textContent = `The data of this page cannot be read (${problem}); it is in matrix.jsonl, too.`;
});
