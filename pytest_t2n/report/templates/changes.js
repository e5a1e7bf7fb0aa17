// What changed between two versions, or since the baseline; the same kinds as `t2n matrix diff`. The third is whether it is for
// the worse, null for neither.
const KINDS = [
  ["regression", "regressions", true], ["looser", "looser level", true], ["other failure", "fail otherwise", true], ["gone", "gone", true],
  ["new", "new", false], ["tighter", "tighter level", false], ["fix", "fixed", false],
  ["operators", "same result, other operators", null],
];
const SHOWN = matchMedia("(max-width: 45rem)").matches ? 3 : 8;
const BASELINE = "baseline";
const THIS_RUN = "run";

// How much a status proves; all others prove nothing.
const PROOF = { pass: 2, weak: 1 };

const SHOWN_OPERATORS = 4;

const kindOf = (data, before, after) => resultKindOf(data.levels, before, after) || (operatorChanges(data, before, after).length ? "operators" : "");

const resultKindOf = (levels, before, after) => {
  if (!before || !after) return before ? "gone" : after ? "new" : "";
  if (before.status === "pass" && after.status === "pass") {
    if (!before.level || !after.level || before.level === after.level) return "";
    return levels.indexOf(before.level) < levels.indexOf(after.level) ? "looser" : "tighter";
  }
  const [had, has] = [PROOF[before.status] || 0, PROOF[after.status] || 0];
  if (had !== has) return had > has ? "regression" : "fix";
  return before.status === after.status && before.stage === after.stage ? "" : "other failure";
};

class Changes {
  constructor(data, open, onChange) {
    this.data = data;
    this.open = open;
    this.box = byId("changes");
    this.before = byId("before");
    this.after = byId("after");
    const versions = data.columns.map((column, index) => [String(index), column.title]);
    const option = ([value, text]) => element("option", { value }, text);
    const named = data.baseline ? [[BASELINE, `baseline${data.baseline.started ? ` of ${data.baseline.started.slice(0, 10)}` : ""}`]] : [];
    this.before.append(...[...named, ...versions].map(option));
    this.after.append(...[...(data.baseline ? [[THIS_RUN, "this run"]] : []), ...versions].map(option));
    const tract = data.columns.map((column, index) => [column, index]).filter(([column]) => column.target === "tract").map(([, index]) => index);
    const usual = tract.length > 1 ? tract.slice(-2) : [0, Math.min(1, data.columns.length - 1)];
    this.usual = data.baseline ? [BASELINE, THIS_RUN] : usual.map(String);
    for (const select of [this.before, this.after]) select.addEventListener("change", () => {
      // The baseline is compared version by version, with the same version of this run.
      if (this.before.value === BASELINE && select === this.before) this.after.value = THIS_RUN;
      else if (this.after.value === THIS_RUN && select === this.after) this.before.value = BASELINE;
      else if (this.after.value === THIS_RUN) this.after.value = this.usual[1] === THIS_RUN ? String(data.columns.length - 1) : this.usual[1];
      else if (this.before.value === BASELINE) this.before.value = "0";
      this.draw();
      onChange();
    });
    byId("compare").addEventListener("submit", (event) => event.preventDefault());
    byId("compare").hidden = !data.baseline && data.columns.length < 2;
    this.set();
  }

  set(before, after) {
    const known = (select, value) => [...select.options].some((one) => one.value === value);
    const fits = known(this.before, before) && known(this.after, after) && (before === BASELINE) === (after === THIS_RUN);
    [this.before.value, this.after.value] = fits ? [before, after] : this.usual;
    this.draw();
  }

  get isUsual() {
    return this.before.value === this.usual[0] && this.after.value === this.usual[1];
  }

  find() {
    const { data } = this;
    const found = [];
    const add = (row, id, column, before, after) => {
      const kind = kindOf(data, before, after);
      if (kind) found.push({ kind, row, id, column, before, after });
    };
    if (this.before.value !== BASELINE) {
      const [from, to] = [Number(this.before.value), Number(this.after.value)];
      for (const row of data.rows) add(row, row.id, row.cells[to] ? to : from, row.cells[from], row.cells[to]);
      return found;
    }
    const places = new Map(data.baseline.columns.map((title, index) => [title, index]));
    const old = new Map(data.baseline.rows.map(([id, codes, counted]) => [id, [codes, counted]]));
    const now = new Set();
    for (const row of data.rows) {
      now.add(row.id);
      const [codes, counted] = old.get(row.id) || [[], []];
      data.columns.forEach((column, index) => {
        const place = places.get(column.title);
        add(row, row.id, index, decode(data, codes[place] ?? -1, counted[place]), row.cells[index]);
      });
    }
    const shown = new Set(data.columns.map((column) => column.title));
    for (const [id, codes] of data.baseline.rows) codes.forEach((code, index) => {
      const title = data.baseline.columns[index];
      if (!now.has(id) || !shown.has(title)) add(null, id, title, decode(data, code), null);
    });
    return found;
  }

  draw() {
    const { data } = this;
    if (byId("compare").hidden) return this.box.replaceChildren(element("p", { class: "note" }, "One version and no baseline: there is nothing to compare with. --t2n-baseline=FILE names an earlier matrix.jsonl."));
    const found = groupBy(this.find(), (change) => change.kind);
    const tally = element("ul", { class: "tally" }, ...KINDS.map(([kind, text, worse]) => {
      const count = (found.get(kind) || []).length;
      return element("li", { class: count ? { true: "bad", false: "good" }[worse] : "zero" }, element("b", {}, String(count)), ` ${text}`);
    }));
    const lists = KINDS.filter(([kind]) => found.has(kind)).map(([kind, text, worse], index) => this.list(text, found.get(kind), worse || index === 0));
    this.box.replaceChildren(tally, ...(lists.length ? lists : [element("p", { class: "note" }, "Nothing changed.")]));
  }

  list(text, changes, open) {
    const rows = element("ul", { class: "changes" });
    const fill = (count) => rows.replaceChildren(...changes.slice(0, count).map((change) => this.item(change)));
    fill(SHOWN);
    const box = element("details", { open }, element("summary", {}, element("b", {}, String(changes.length)), ` ${text}`), rows);
    if (changes.length > SHOWN) {
      const more = element("button", { type: "button", class: "link" }, `show all ${changes.length}`);
      more.addEventListener("click", () => { fill(changes.length); more.remove(); });
      box.append(more);
    }
    return box;
  }

  item({ row, id, column, before, after }) {
    const words = (cell) => cell ? element("span", { class: `tag ${colourOf(cell)}` }, `${shortOf(cell)} ${detailOf(cell)}`.trim()) : element("span", { class: "tag none" }, "none");
    const where = this.before.value === BASELINE ? (typeof column === "number" ? this.data.columns[column].title : column) : "";
    const name = row ? element("button", { type: "button", class: "link" }, row.name) : element("span", {}, id);
    if (row) name.addEventListener("click", () => this.open(row, column, name));
    const turns = operatorChanges(this.data, before, after).map((one) => `${one.name} ${one.was} → ${one.now}`);
    const more = turns.length > SHOWN_OPERATORS ? [`${turns.length - SHOWN_OPERATORS} more`] : [];
    const operators = turns.length > 0 && element("small", { class: "operators", title: turns.join(", ") }, [...turns.slice(0, SHOWN_OPERATORS), ...more].join(", "));
    return element("li", {}, name, where && element("small", {}, ` ${where}`), operators, element("span", { class: "turn" }, words(before), " → ", words(after)));
  }
}
