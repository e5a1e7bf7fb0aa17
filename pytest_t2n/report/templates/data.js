// The grid as objects, and blocks of evidence inflated when somebody looks.
const byId = (id) => document.getElementById(id);

const element = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
  node.append(...children.filter((child) => child !== undefined && child !== null && child !== false));
  return node;
};

// The right edge of what can be scrolled further fades.
const fade = (box) => box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
const resized = new ResizeObserver((entries) => entries.forEach(({ target }) => fade(target.closest(".scroll, .grid"))));
const fadeEdges = (root) => {
  for (const box of root.querySelectorAll(".scroll, .grid")) {
    box.addEventListener("scroll", () => fade(box), { passive: true });
    resized.observe(box);
    resized.observe(box.firstElementChild);
  }
};

// Parts of a large page are scripts in a folder beside it; a page that was opened as a file can load nothing else.
const arrived = new Map();
window.t2nPart = (id, text) => arrived.set(id, text);

const textOf = async (id) => {
  if (byId(id)) return byId(id).textContent.trim();
  const script = element("script", { src: `${byId("data").dataset.folder}/${id}.js` });
  await new Promise((done, fail) => {
    script.addEventListener("load", done);
    script.addEventListener("error", () => fail(new Error(`${script.getAttribute("src")} is missing`)));
    document.head.append(script);
  });
  script.remove();
  const text = arrived.get(id);
  arrived.delete(id);
  return text;
};

const unpack = async (id) => {
  const bytes = Uint8Array.from(atob(await textOf(id)), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
};

const blocks = new Map();
const block = (id) => {
  if (!blocks.has(id)) blocks.set(id, unpack(id));
  return blocks.get(id);
};

// One hexadecimal digit each, from the right: status, stage, level (0 for none), expected, reused, unexpected.
const decode = (data, code, counted = -1) => code < 0 ? null : {
  counted,
  status: data.statuses[code & 15],
  stage: data.stages[code >> 4 & 15],
  level: data.levels[(code >> 8 & 15) - 1] || "",
  expected: Boolean(code >> 12 & 15),
  reused: Boolean(code >> 16 & 15),
  surprise: Boolean(code >> 20 & 15),
};

const readGrid = (data) => {
  let place = 0;
  // Where a suite is one test with parameters, these are what tells its cases apart.
  const functions = new Map();
  for (const [suite, , , , name] of data.rows) functions.set(suite, (functions.get(suite) || new Set()).add(name.split("[")[0]));
  const shortName = (suite, name) => functions.get(suite).size === 1 && name.endsWith("]") ? name.slice(name.indexOf("[") + 1, -1) : name;
  const seen = new Map();
  const known = (code, cause, tokens, counted) => {
    const key = `${code} ${cause} ${tokens} ${counted}`;
    if (!seen.has(key)) seen.set(key, { ...decode(data, code, counted), cause, tokens });
    return seen.get(key);
  };
  data.rows = data.rows.map(([suite, op, ops, dtype, name, support, codes, id]) => {
    const cells = [];
    const places = [];
    for (let i = 0; i < codes.length; i += 2) {
      cells.push(codes[i] < 0 ? null : known(codes[i], codes[i + 1], data.tokens[place] || "", data.operators[place]));
      places.push(codes[i] < 0 ? -1 : place++);
    }
    const found = cells.filter(Boolean);
    const causes = [...new Set(found.map((cell) => cell.cause).filter(Boolean))].map((cause) => data.causes[cause - 1]);
    const words = [id, support, ...ops.map((one) => data.ops[one]), ...causes.map((cause) => `${cause.title} ${cause.words} ${cause.key}`)];
    return {
      suite: data.suites[suite], op: op < 0 ? "" : data.ops[op], ops: ops.map((one) => data.ops[one]), dtype: data.dtypes[dtype],
      name, short: shortName(suite, name), support, id, cells, places,
      differs: new Set(found.map((cell) => cell.status)).size > 1,
      group: op < 0 ? name.split("[")[0] : data.ops[op],
      words: words.join("\n").toLowerCase(),
    };
  });
  return data;
};

const evidenceOf = async (data, row, column) => {
  const place = row.places[column];
  const cells = await block(`evidence-${Math.floor(place / data.block)}`);
  return cells[place % data.block];
};

// Operators of the optimised graph with their numbers of nodes, by name; empty where the engine lists none.
const operatorsOf = (data, cell) => {
  const { names, counts } = data.counted;
  const flat = (cell && counts[cell.counted]) || [];
  return new Map(Array.from({ length: flat.length / 2 }, (_, n) => [names[flat[2 * n]], flat[2 * n + 1]]));
};

// Operators whose number of nodes differs, with both numbers, the largest difference first.
const operatorChanges = (data, before, after) => {
  const [was, now] = [operatorsOf(data, before), operatorsOf(data, after)];
  if (!was.size || !now.size || before.counted === after.counted) return [];
  return [...new Set([...was.keys(), ...now.keys()])].map((name) => ({ name, was: was.get(name) || 0, now: now.get(name) || 0 }))
    .filter((one) => one.was !== one.now).sort((a, b) => Math.abs(b.was - b.now) - Math.abs(a.was - a.now) || (a.name < b.name ? -1 : 1));
};

const graphOf = async (place) => (await block(`graphs-${place >> 12}`))[place & 4095];

// What a cell says of itself: in the grid, and to somebody who hears it.
const shortOf = (cell) => cell.status === "pass" ? cell.level || "pass" : cell.status === "not_run" ? "not run" : cell.status;
const stageOf = (cell) => ["pass", "weak", "skip", "not_run", "unsupported"].includes(cell.status) ? "" : cell.stage;
const detailOf = (cell) => cell.tokens ? `${cell.tokens} tokens` : stageOf(cell);
const spokenOf = (cell) => {
  const words = ["pass", "weak"].includes(cell.status) ? `${cell.status}, ${cell.level || "no level"}` : `${cell.status} at ${cell.stage}`;
  return words + (cell.tokens ? `, ${cell.tokens} tokens` : "") + (cell.expected ? ", expected" : "") + (cell.reused ? ", reused" : "");
};
const colourOf = (cell) => cell.status === "pass" && cell.level ? `l-${cell.level}` : `s-${cell.status}`;
const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
