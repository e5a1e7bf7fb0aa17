// A name that a narrow column cuts in its middle: names of parametrized cases differ at their ends.
const cut = (name) => {
  const place = Math.max(Math.floor(name.length / 2), name.length - 14);
  return element("span", { class: "cut" }, element("span", {}, name.slice(0, place)), element("span", {}, name.slice(place)));
};

// The matrix: only the lines in view are in the document. Lines are suites, groups of one operator, and cases.
const LINE = 28;
const SPARE = 12;
const GRAVITY = ["mismatch", "crash", "timeout", "oom", "error", "unsupported", "not_run", "weak", "skip", "pass"];

class Grid {
  constructor(data, open) {
    this.data = data;
    this.open = open;
    this.scroller = byId("scroller");
    this.table = byId("matrix");
    this.body = this.table.tBodies[0];
    this.lines = [];
    this.folded = new Set();
    this.at = { line: 0, column: 0 };
    this.sort = "";
    this.rendered = "";
    this.drawn = new Map();
    [this.above, this.below] = [0, 1].map(() => element("tr", { "aria-hidden": "true", class: "spacer" }, element("td", { colspan: data.columns.length + 4 })));
    this.drawHead();
    this.scroller.addEventListener("scroll", () => this.schedule(), { passive: true });
    new ResizeObserver(() => this.schedule()).observe(this.scroller);
    this.table.addEventListener("keydown", (event) => this.onKey(event));
    this.body.addEventListener("click", (event) => this.onClick(event));
    this.body.addEventListener("focusin", (event) => {
      const target = event.target.closest("[data-line]");
      if (target) this.at = { line: Number(target.dataset.line), column: Number(target.dataset.column) };
    });
  }

  drawHead() {
    const { columns } = this.data;
    const widths = [["case"], ["op"], ["dtype"], ["support"], ...columns.map(() => ["version"])];
    this.table.querySelector("colgroup").replaceChildren(...widths.map(([name]) => element("col", { class: `c-${name}` })));
    const head = (key, text, name) => element("th", { scope: "col", role: "columnheader", class: `h-${name}`, "data-sort": key },
      key ? element("button", { type: "button", title: `sort by ${text}` }, text) : text);
    const row = this.table.tHead.rows[0];
    row.replaceChildren(head("name", "case", "case"), head("", "operator", "op"), head("", "type", "dtype"), head("", "works in", "support"),
      ...columns.map((column, index) => head(String(index), column.target === "tract" && columns.length > 3 ? column.label : column.title, "version")));
    this.table.setAttribute("aria-colcount", columns.length + 4);
    row.addEventListener("click", (event) => {
      const target = event.target.closest("th");
      if (target && target.dataset.sort && event.target.closest("button")) this.onSort(this.sort === target.dataset.sort ? "" : target.dataset.sort);
    });
  }

  show(rows, sort) {
    this.sort = sort;
    for (const head of this.table.tHead.rows[0].cells) {
      if (head.dataset.sort && head.dataset.sort === sort) head.setAttribute("aria-sort", sort === "name" ? "ascending" : "descending");
      else head.removeAttribute("aria-sort");
    }
    this.rows = rows;
    this.layout();
  }

  layout() {
    this.lines = this.sort ? this.sorted() : this.grouped();
    this.table.setAttribute("aria-rowcount", this.lines.length + 1);
    this.at.line = Math.min(this.at.line, Math.max(this.lines.length - 1, 0));
    this.rendered = "";
    this.drawn.clear();
    this.body.replaceChildren(this.above, this.below);
    // The scroller is as high as what is in it: the lines take their room before its height is read.
    this.above.style.height = "0";
    this.below.style.height = `${this.lines.length * LINE}px`;
    if (!this.lines.length) this.body.append(element("tr", {}, element("td", { class: "empty", colspan: this.data.columns.length + 4 }, "No case fits these filters.")));
    this.render();
  }

  sorted() {
    const rows = [...this.rows];
    if (this.sort === "name") rows.sort((a, b) => (a.id < b.id ? -1 : 1));
    else {
      const column = Number(this.sort);
      const weight = (row) => {
        const cell = row.cells[column];
        if (!cell) return 1000;
        return GRAVITY.indexOf(cell.status) * 10 + (cell.status === "pass" ? this.data.levels.length - this.data.levels.indexOf(cell.level) : cell.expected ? 5 : 0);
      };
      rows.sort((a, b) => weight(a) - weight(b));
    }
    return rows.map((row) => ({ kind: "row", row }));
  }

  grouped() {
    const lines = [];
    const bySuite = groupBy(this.rows, (row) => row.suite);
    for (const [suite, rows] of bySuite) {
      const folded = this.folded.has(suite);
      lines.push({ kind: "suite", name: suite, rows, folded });
      if (folded) continue;
      const byGroup = groupBy(rows, (row) => row.group);
      for (const [group, own] of byGroup) {
        const headed = own.length > 1 && byGroup.size > 1;
        if (headed) lines.push({ kind: "group", name: group, rows: own });
        for (const row of own) lines.push({ kind: "row", row, inside: headed });
      }
    }
    return lines;
  }

  schedule() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => { this.pending = 0; this.render(); });
  }

  // Rows that stay in view stay as they are: a press that began on one ends on it, and it keeps the focus.
  render() {
    const height = this.scroller.clientHeight;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / LINE) - SPARE);
    const last = Math.min(this.lines.length, Math.ceil((this.scroller.scrollTop + height) / LINE) + SPARE);
    const key = `${first} ${last}`;
    if (key === this.rendered) return;
    this.rendered = key;
    for (const [index, row] of this.drawn) if (index < first || index >= last) { row.remove(); this.drawn.delete(index); }
    let before = this.above;
    for (let index = first; index < last; index++) {
      if (!this.drawn.has(index)) {
        this.drawn.set(index, this.draw(this.lines[index], index));
        before.after(this.drawn.get(index));
      }
      before = this.drawn.get(index);
    }
    this.above.style.height = `${first * LINE}px`;
    this.below.style.height = `${(this.lines.length - last) * LINE}px`;
    this.mark();
  }

  // One cell of the grid is in the tab order; where it scrolled away, the first that is there.
  mark() {
    const old = this.body.querySelector('[tabindex="0"]');
    if (old) old.tabIndex = -1;
    const wanted = this.body.querySelector(`[data-line="${this.at.line}"][data-column="${this.at.column}"]`);
    const target = wanted || this.body.querySelector("[data-line]");
    if (!target) return;
    target.tabIndex = 0;
  }

  draw(line, index) {
    const attributes = { role: "row", "aria-rowindex": index + 2, class: `line-${line.kind}` };
    if (line.kind !== "row") return this.drawGroup(line, index, attributes);
    const { row } = line;
    const name = element("th", { scope: "row", role: "rowheader", title: row.id, class: line.inside ? "inside" : "" }, cut(this.sort ? `${row.suite} › ${row.short}` : row.short));
    const cells = row.cells.map((cell, column) => {
      if (!cell) return element("td", { role: "gridcell", class: "none", "data-line": index, "data-column": column, tabindex: -1, "aria-label": `no cell in ${this.data.columns[column].title}` }, "·");
      const small = detailOf(cell);
      return element("td", { role: "gridcell" }, element("button", {
        type: "button", class: `cell ${colourOf(cell)}${cell.surprise ? " surprise" : ""}`, tabindex: -1, "data-line": index, "data-column": column,
        "aria-label": `${row.name} in ${this.data.columns[column].title}: ${spokenOf(cell)}`,
      }, shortOf(cell), small && element("small", {}, ` ${small}`), cell.expected && element("i", { class: "mark" }, "x"), cell.reused && element("i", { class: "mark" }, "r")));
    });
    return element("tr", attributes, name,
      element("td", { role: "gridcell", class: "op", title: row.ops.join(", ") }, row.op || (row.ops.length ? `${row.ops.length} operators` : "")),
      element("td", { role: "gridcell", class: "dtype" }, row.dtype),
      element("td", { role: "gridcell", class: `support ${{ all: "", none: "bad", "not run": "" }[row.support] ?? "warn"}`, title: row.support }, row.support), ...cells);
  }

  drawGroup(line, index, attributes) {
    const counts = this.data.columns.map((_, column) => {
      const cells = line.rows.map((row) => row.cells[column]).filter((cell) => cell && cell.status !== "skip");
      const passed = cells.filter((cell) => cell.status === "pass").length;
      return element("td", { role: "gridcell", class: `count${passed === cells.length ? "" : " partly"}` }, cells.length ? `${passed} / ${cells.length}` : "");
    });
    const text = [line.name, element("small", {}, ` ${plural(line.rows.length, "case")}`)];
    const title = line.kind === "suite"
      ? element("button", { type: "button", class: "fold", "aria-expanded": String(!line.folded), tabindex: -1, "data-line": index, "data-column": 0, "data-suite": line.name }, ...text)
      : element("span", {}, ...text);
    return element("tr", attributes, element("th", { scope: "rowgroup", role: "rowheader", colspan: 4 }, title), ...counts);
  }

  onClick(event) {
    const fold = event.target.closest("[data-suite]");
    if (fold) return this.fold(fold.dataset.suite);
    const button = event.target.closest("button.cell");
    if (!button) return;
    const { row } = this.lines[Number(button.dataset.line)];
    this.open(row, Number(button.dataset.column), button);
  }

  fold(suite) {
    if (!this.folded.delete(suite)) this.folded.add(suite);
    this.layout();
    this.onFold();
    const button = [...this.body.querySelectorAll("[data-suite]")].find((one) => one.dataset.suite === suite);
    if (button) button.focus({ preventScroll: true });
  }

  onKey(event) {
    if (!event.target.closest("[data-line]")) return;
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / LINE) - 2);
    const step = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], PageDown: [page, 0], PageUp: [-page, 0] }[event.key];
    const last = this.data.columns.length - 1;
    if (step) this.move(this.at.line + step[0], this.at.column + step[1], Math.sign(step[0]) || 1);
    else if (event.key === "Home") this.move(event.ctrlKey ? 0 : this.at.line, 0, 1);
    else if (event.key === "End") this.move(event.ctrlKey ? this.lines.length - 1 : this.at.line, last, -1);
    else return;
    event.preventDefault();
  }

  // Headings of groups have nothing to enter: they are stepped over.
  move(line, column, way) {
    let to = Math.min(Math.max(line, 0), this.lines.length - 1);
    while (this.lines[to] && this.lines[to].kind === "group") to += way;
    if (!this.lines[to]) return;
    const width = this.lines[to].kind === "suite" ? 0 : this.data.columns.length - 1;
    this.goto(to, Math.min(Math.max(column, 0), width));
  }

  goto(line, column) {
    this.at = { line, column };
    const top = line * LINE;
    const room = this.scroller.clientHeight - 2 * LINE;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top > this.scroller.scrollTop + room) this.scroller.scrollTop = top - room;
    this.render();
    this.mark();
    const target = this.body.querySelector(`[data-line="${line}"][data-column="${column}"]`);
    if (target) { target.focus({ preventScroll: true }); target.scrollIntoView({ block: "nearest", inline: "nearest" }); }
  }

  // Focus the cell of a row, wherever it is now.
  focus(row, column) {
    const line = this.lines.findIndex((one) => one.row === row);
    if (line >= 0) this.goto(line, column);
  }
}

const groupBy = (items, key) => {
  const groups = new Map();
  for (const item of items) {
    const name = key(item);
    if (groups.has(name)) groups.get(name).push(item);
    else groups.set(name, [item]);
  }
  return groups;
};
