// What is known of one cell, in a panel beside the matrix.
const number = (value) => {
  if (typeof value !== "number" || Number.isInteger(value)) return String(value);
  return Math.abs(value) < 1e-3 ? value.toExponential(3).replace(/\.?0+e/, "e") : String(Number(value.toPrecision(5)));
};
const sizesText = (list) => list.map((one) => Object.entries(one).map(([name, size]) => `${name}=${size}`).join(", ") || "as given").join("; ");
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
const milliseconds = (seconds) => seconds >= 1 ? `${seconds.toPrecision(3)} s` : `${Number((seconds * 1000).toPrecision(3))} ms`;

class Evidence {
  constructor(data, onChange, onClose) {
    this.data = data;
    this.onChange = onChange;
    this.onClose = onClose;
    this.box = byId("evidence");
    this.shown = null;
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.shown) this.close();
    });
  }

  async open(row, column, { focus = true } = {}) {
    this.shown = { row, column };
    const cell = row.cells[column];
    let facts;
    try {
      facts = cell ? await evidenceOf(this.data, row, column) : {};
    } catch (problem) {
      facts = { error: { message: `The evidence of this page cannot be read (${problem}); it is in matrix.jsonl, too.` } };
    }
    if (!this.shown || this.shown.row !== row || this.shown.column !== column) return;
    const title = this.data.columns[column].title;
    const close = element("button", { type: "button", class: "close", "aria-label": "Close" }, "×");
    close.addEventListener("click", () => this.close());
    this.box.replaceChildren(
      element("header", {}, element("h2", { id: "evidence-title" }, row.name, element("small", {}, ` in ${title}`)), close),
      this.strip(row, column),
      ...(cell ? this.body(row, column, cell, facts) : [element("p", {}, "There is no cell here: the case does not run in this version.")]),
    );
    this.box.hidden = false;
    fadeEdges(this.box);
    document.body.classList.add("with-evidence");
    this.box.scrollTop = 0;
    if (focus) this.box.focus({ preventScroll: true });
    this.onChange();
  }

  close() {
    const { row, column } = this.shown;
    this.shown = null;
    this.box.hidden = true;
    document.body.classList.remove("with-evidence");
    this.onClose(row, column);
    this.onChange();
  }

  // The same case in all versions.
  strip(row, column) {
    return element("div", { class: "strip", role: "group", "aria-label": "The same case in each version" }, ...row.cells.map((cell, index) => {
      const button = element("button", { type: "button", class: cell ? colourOf(cell) : "none", "aria-current": index === column ? "true" : undefined, disabled: !cell },
        element("b", {}, this.data.columns[index].target === "tract" ? this.data.columns[index].label : this.data.columns[index].title), cell ? `${shortOf(cell)} ${detailOf(cell)}` : "–");
      button.addEventListener("click", () => this.open(row, index));
      return button;
    }));
  }

  body(row, column, cell, facts) {
    const error = facts.error || {};
    const list = element("dl", { class: "facts" });
    const fact = (name, value) => value && list.append(element("dt", {}, name), element("dd", {}, value));
    fact("status", `${cell.status} at stage ${cell.stage}${cell.surprise ? "" : cell.expected ? " (expected)" : ""}`);
    fact("level", cell.level ? `${cell.level} reached, ${facts.required || "none"} required` : facts.required && `none reached, ${facts.required} required`);
    for (const metric of facts.metrics || []) {
      fact(`metric ${metric.name}`, [`${number(metric.value)}, ${metric.required} required`, metric.reference && `against ${metric.reference}`, metric.weak].filter(Boolean).join("; "));
    }
    fact("stored weights", (facts.facts || {}).stored_weights);
    for (const [name, ended] of Object.entries((facts.facts || {}).checked_transforms || {})) fact(`after ${name}`, ended);
    fact("tokens", cell.tokens && `${cell.tokens} right`);
    fact("expected", facts.expected);
    fact("error", error.error_class);
    fact("who is wrong", (facts.facts || {}).author);
    fact("operator", error.op || row.op || row.ops.join(", "));
    fact("module", error.module_path);
    fact("source", error.source && element("code", {}, error.source));
    fact("hint", error.hint);
    fact("fingerprint", error.fingerprint && this.fingerprint(error.fingerprint, cell));
    fact("works in", row.support);
    fact("sizes", (facts.sizes || []).some((one) => Object.keys(one).length) && sizesText(facts.sizes));
    fact("holds for", facts.range);
    fact("refused at", facts.refused_sizes && facts.refused_sizes.some((one) => Object.keys(one).length) && sizesText(facts.refused_sizes));
    fact("failed at", facts.failed_sizes && facts.failed_sizes.some((one) => Object.keys(one).length) && sizesText(facts.failed_sizes));
    fact("failed on the path", facts.path);
    fact("paths", (facts.paths || []).join(", "));
    for (const [name, ended] of Object.entries((facts.facts || {}).failed_paths || {})) fact(`not right on the path ${name}`, ended);
    fact("worst of its kernel tiers", this.data.tiers[row.id]);
    fact("kernels", this.data.columns[column].kernels);
    fact("judged on", this.data.platforms[facts.platform]);
    fact("exported on", this.data.platforms[facts.exported]);
    fact("reused", cell.reused && "from an earlier session: same archive, numbers, engine, kernels, platform and comparison");
    fact("archive", facts.archive_sha256 && `${facts.archive_bytes} bytes, SHA-256 ${facts.archive_sha256}…`);
    const parts = [list];
    if (error.message) parts.unshift(element("pre", { class: "message" }, error.message));
    if (facts.outputs && facts.outputs.length) parts.push(element("h3", {}, "Outputs"), this.outputs(facts.outputs));
    const operators = operatorsOf(this.data, cell);
    if (operators.size) parts.push(element("h3", {}, "Operators of the optimised graph"), this.operators(operators, row, column));
    else if ((facts.facts || {}).operators_unknown) parts.push(element("h3", {}, "Operators of the optimised graph"), element("p", { class: "note" }, `Not known: ${facts.facts.operators_unknown}`));
    if (facts.times && Object.keys(facts.times).length) parts.push(element("h3", {}, "Time by stage"), this.times(facts.times));
    if (facts.benchmark) parts.push(element("h3", {}, "Benchmark"), this.benchmark(facts.benchmark));
    if (facts.nodeid) parts.push(element("h3", {}, "Reproduce"), this.command(`pytest ${quoted(facts.nodeid)} ${this.data.columns[column].select}`));
    if (error.details) parts.push(element("h3", {}, "Details"), element("pre", {}, error.details));
    if (facts.graph !== undefined) parts.push(this.graph(facts.graph));
    if (facts.facts && Object.keys(facts.facts).length) parts.push(element("details", {}, element("summary", {}, "What the engine says of the model"), element("pre", {}, JSON.stringify(facts.facts, null, 1))));
    return parts;
  }

  fingerprint(key, cell) {
    const button = element("button", { type: "button", class: "link" }, "show all cells with this cause");
    button.addEventListener("click", () => this.onCause(this.data.causes[cell.cause - 1].key));
    return element("span", {}, element("code", {}, key), " ", button);
  }

  outputs(list) {
    const heads = ["output", "type", "level", "max abs", "mean abs", "max rel", "max ULP", "SQNR", "worst at", "expected", "actual"];
    const rows = list.flatMap((output) => {
      const values = [
        output.name, `${output.dtype}[${(output.shape || []).join(",")}]`, [output.level || "none", output.limit && `required ${output.limit}`].filter(Boolean).join(", "),
        number(output.max_abs ?? 0), output.mean_abs === undefined ? "–" : number(output.mean_abs), number(output.max_rel ?? 0), output.max_ulp ?? "–",
        output.sqnr === undefined ? "–" : `${number(output.sqnr)} dB`, output.worst_index ? `[${output.worst_index.join(", ")}]` : "–",
        output.worst_expected === undefined ? "–" : number(output.worst_expected), output.worst_actual === undefined ? "–" : number(output.worst_actual),
      ];
      const line = element("tr", {}, ...values.map((value, index) => element(index ? "td" : "th", index ? {} : { scope: "row" }, String(value))));
      const problems = [output.problem, output.nan_mismatches && plural(output.nan_mismatches, "NaN mismatch"), output.inf_mismatches && plural(output.inf_mismatches, "infinity mismatch")].filter(Boolean);
      const told = output.not_finite ? `NaN or infinite in ${number(100 * output.not_finite)} % of the elements` : "";
      const notes = [...problems, told].filter(Boolean);
      return notes.length ? [line, element("tr", {}, element("td", { colspan: heads.length, class: problems.length ? "bad" : "" }, notes.join("; ")))] : [line];
    });
    return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Outputs" }, element("table", { class: "plain" },
      element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))), element("tbody", {}, ...rows)));
  }

  // The most frequent first, each with its change from the cell of the version before.
  operators(operators, row, column) {
    const { data } = this;
    const before = row.cells.slice(0, column).findLastIndex((cell, index) => cell && operatorsOf(data, cell).size && data.columns[index].target === data.columns[column].target);
    const changes = new Map(before < 0 ? [] : operatorChanges(data, row.cells[before], row.cells[column]).map((one) => [one.name, one]));
    const names = [...new Set([...operators.keys(), ...changes.keys()])].sort((a, b) => (operators.get(b) || 0) - (operators.get(a) || 0) || (a < b ? -1 : 1));
    const line = (name) => {
      const change = changes.get(name);
      const cells = before < 0 ? [] : [element("td", {}, change ? `${change.was} → ${change.now}` : "")];
      return element("tr", {}, element("th", { scope: "row" }, name), element("td", { class: "n" }, String(operators.get(name) || 0)), ...cells);
    };
    const heads = ["operator", "nodes", ...(before < 0 ? [] : [`since ${data.columns[before].title}`])];
    return element("div", { class: "scroll operators", tabindex: 0, role: "region", "aria-label": "Operators of the optimised graph" }, element("table", { class: "plain" },
      element("thead", {}, element("tr", {}, ...heads.map((head, index) => element("th", { scope: "col", class: index === 1 && "n" }, head)))), element("tbody", {}, ...names.map(line))));
  }

  times(times) {
    const most = Math.max(...Object.values(times));
    return element("table", { class: "plain times" }, element("tbody", {}, ...Object.entries(times).map(([stage, seconds]) => {
      const bar = element("i");
      bar.style.width = `${Math.max(0.5, 100 * seconds / most)}%`;
      return element("tr", {}, element("th", { scope: "row" }, stage), element("td", { class: "n" }, milliseconds(seconds)), element("td", { class: "chart", "aria-hidden": "true" }, bar));
    })));
  }

  benchmark({ export: exports, load, run, runs }) {
    const middle = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
    const line = (name, values) => element("tr", {}, element("th", { scope: "row" }, name), ...[Math.min(...values), middle(values), Math.max(...values)].map((one) => element("td", { class: "n" }, milliseconds(one))), element("td", { class: "n" }, String(values.length)));
    return element("table", { class: "plain times" },
      element("thead", {}, element("tr", {}, ...["", "least", "middle", "most", "rounds"].map((head) => element("th", { scope: "col", class: head && "n" }, head)))),
      element("tbody", {}, line("export", exports), line("load", load), line("one run", run.map((one) => one / runs))));
  }

  command(text) {
    const shown = element("pre", { class: "command" }, text);
    const copy = element("button", { type: "button", class: "copy" }, "copy");
    copy.addEventListener("click", async () => {
      getSelection().selectAllChildren(shown);
      try {
        await navigator.clipboard.writeText(text);
        copy.textContent = "copied";
      } catch {
        copy.textContent = "selected";
      }
    });
    return element("div", { class: "copyable" }, shown, copy);
  }

  graph(place) {
    const text = element("pre", { class: "graph", tabindex: 0 }, place < 0 ? "Left out of this page for its size; it is in matrix.jsonl." : "…");
    const box = element("details", { class: "graph-box" }, element("summary", {}, "Graph"), text);
    box.addEventListener("toggle", async () => {
      if (box.open && place >= 0) text.textContent = await graphOf(place);
    });
    return box;
  }
}
