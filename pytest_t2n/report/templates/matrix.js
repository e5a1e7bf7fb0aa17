"use strict";
(async () => {
  const byId = (id) => document.getElementById(id);
  const table = byId("matrix");
  const body = table.tBodies[0];
  const filters = { text: byId("text"), status: byId("status"), differs: byId("differs") };
  const CHUNK = 150;

  const element = (name, attributes = {}, ...children) => {
    const node = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };

  const unpack = async () => {
    const bytes = Uint8Array.from(atob(byId("data").textContent.trim()), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  };

  let data;
  try {
    data = await unpack();
  } catch (problem) {
    byId("trouble").hidden = false;
    byId("trouble").textContent = `The data of this page cannot be read (${problem}); it is in matrix.jsonl, too.`;
    return;
  }
  for (const row of data.rows) {
    const words = [row.case];
    for (const cell of row.cells) {
      const error = cell && cell.error;
      if (error) words.push(error.error_class, error.message, error.op || "", error.module_path || "", error.fingerprint || "");
      if (cell && cell.level) words.push(cell.level);
    }
    row.words = words.join("\n").toLowerCase();
  }

  const number = (value) => (typeof value === "number" && !Number.isInteger(value) ? value.toPrecision(4).replace(/\.?0+(e|$)/, "$1") : String(value));
  const sizes = (list) => list.map((one) => Object.entries(one).map(([name, size]) => `${name}=${size}`).join(", ") || "as given").join("; ");
  const short = (cell) => {
    if (cell.status === "pass" || cell.status === "mismatch") return cell.level || "no level";
    return cell.stage;
  };

  const outputs = (list) => {
    const heads = ["output", "type", "level", "required", "max abs", "max rel", "max ULP", "worst at", "expected", "actual"];
    const grid = element("table", {}, element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))));
    const rows = element("tbody");
    for (const output of list) {
      const shown = [
        output.name, `${output.dtype}[${output.shape.join(",")}]`, output.level || "none", output.required,
        number(output.max_abs ?? 0), number(output.max_rel ?? 0), output.max_ulp ?? "–",
        output.worst_index ? `[${output.worst_index.join(", ")}]` : "–",
        output.worst_expected === undefined ? "–" : String(output.worst_expected),
        output.worst_actual === undefined ? "–" : String(output.worst_actual),
      ];
      rows.append(element("tr", {}, ...shown.map((text) => element("td", {}, String(text)))));
      if (output.problem) rows.append(element("tr", {}, element("td", { colspan: heads.length }, `! ${output.problem}`)));
    }
    grid.append(rows);
    return grid;
  };

  const evidence = (row, column) => {
    const cell = row.cells[column];
    const facts = element("dl");
    const fact = (name, value) => value && facts.append(element("dt", {}, name), element("dd", {}, value));
    const error = cell.error || {};
    fact("status", `${cell.status} at stage ${cell.stage}`);
    fact("level", cell.level && `${cell.level} reached, ${cell.required} required`);
    fact("expected", cell.expected);
    fact("error", error.error_class);
    fact("op", error.op);
    fact("module", error.module_path);
    fact("source", error.source);
    fact("hint", error.hint);
    fact("fingerprint", error.fingerprint);
    fact("sizes checked", (cell.sizes || []).some((one) => Object.keys(one).length) && sizes(cell.sizes));
    fact("failed at", cell.failed_sizes && sizes(cell.failed_sizes));
    fact("times", cell.times && Object.entries(cell.times).map(([stage, time]) => `${stage} ${number(time * 1000)} ms`).join(", "));
    fact("archive", cell.archive_sha256 && `${cell.archive_bytes} bytes, SHA-256 ${cell.archive_sha256}`);
    fact("test", cell.nodeid);
    const box = element("td", { colspan: data.columns.length + 1 }, element("h3", {}, `${row.case} on ${data.columns[column]}`), facts);
    if (error.message) box.append(element("pre", {}, error.message));
    if (cell.outputs) box.append(element("div", { class: "scroll" }, outputs(cell.outputs)));
    if (error.details) box.append(element("pre", {}, error.details));
    return element("tr", { class: "evidence" }, box);
  };

  const toggle = (button, line, row, column) => {
    const open = button.getAttribute("aria-expanded") === "true";
    if (line.nextSibling && line.nextSibling.className === "evidence") line.nextSibling.remove();
    for (const other of line.querySelectorAll("button")) other.setAttribute("aria-expanded", "false");
    if (open) return;
    button.setAttribute("aria-expanded", "true");
    line.after(evidence(row, column));
  };

  const draw = (row) => {
    const line = element("tr", {}, element("th", { scope: "row" }, row.case));
    row.cells.forEach((cell, column) => {
      if (!cell) return line.append(element("td", {}, element("small", {}, "–")));
      const button = element("button", { type: "button", class: `s-${cell.status}`, "aria-expanded": "false" }, cell.status, " ", element("small", {}, short(cell) + (cell.expected ? ", expected" : "")));
      button.addEventListener("click", () => toggle(button, line, row, column));
      line.append(element("td", {}, button));
    });
    return line;
  };

  let found = [];
  let drawn = 0;
  const drawMore = () => {
    const next = found.slice(drawn, drawn + CHUNK);
    body.append(...next.map(draw));
    drawn += next.length;
  };
  const apply = () => {
    const words = filters.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const status = filters.status.value;
    found = data.rows.filter((row) =>
      words.every((word) => row.words.includes(word)) &&
      (!status || row.cells.some((cell) => cell && cell.status === status)) &&
      (!filters.differs.checked || row.differs));
    body.replaceChildren();
    drawn = 0;
    drawMore();
    byId("shown").textContent = `${found.length} of ${data.rows.length} cases`;
    const state = new URLSearchParams();
    if (filters.text.value) state.set("q", filters.text.value);
    if (status) state.set("status", status);
    if (filters.differs.checked) state.set("differs", "1");
    const wanted = state.toString();
    if (location.hash.slice(1) !== wanted) history.replaceState(null, "", wanted ? `#${wanted}` : location.pathname + location.search);
  };
  const restore = () => {
    const state = new URLSearchParams(location.hash.slice(1));
    filters.text.value = state.get("q") || "";
    filters.status.value = state.get("status") || "";
    filters.differs.checked = state.has("differs");
    apply();
  };
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("input", apply);
  addEventListener("hashchange", restore);
  new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting) && drawn < found.length) drawMore();
  }, { rootMargin: "800px" }).observe(byId("more"));
  restore();
})();
