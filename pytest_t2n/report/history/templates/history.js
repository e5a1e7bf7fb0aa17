"use strict";
// Permalinks: #case=… shows the course of a case over the runs, #run=… what a run found in each engine.
(() => {
const byId = (id) => document.getElementById(id);
const element = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) node.setAttribute(key, value);
  node.append(...children.filter((child) => child !== undefined && child !== null && child !== ""));
  return node;
};
const bytes = Uint8Array.from(atob(byId("data").textContent.trim()), (letter) => letter.charCodeAt(0));
const data = JSON.parse(new TextDecoder().decode(bytes));
const arrived = new Map();
window.t2nCases = (bucket, cases) => arrived.set(bucket, cases);

const load = (bucket) => arrived.has(bucket) ? Promise.resolve() : new Promise((done, fail) => {
  const script = element("script", { src: `${data.folder}/${bucket}.js` });
  script.addEventListener("load", done);
  script.addEventListener("error", () => fail(new Error(`${data.folder}/${bucket}.js is missing`)));
  document.head.append(script);
});

// The file whose first case is the last one that is not behind this name, in the order of UTF-8.
const encoded = (text) => new TextEncoder().encode(text);
const isBehind = (one, other) => {
  const [a, b] = [encoded(one), encoded(other)];
  const place = a.findIndex((byte, index) => byte !== b[index]);
  return place >= 0 && (place >= b.length || a[place] > b[place]);
};
const bucketOf = (name) => Math.max(0, data.firsts.filter((first) => !isBehind(first, name)).length - 1);

const table = (heads, rows) => element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Course" }, element("table", { class: "plain" },
  element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...rows)));
const head = (text, link) => element("th", { scope: "col" }, link ? element("a", { href: link }, text) : text);
const runLink = (run) => `#run=${encodeURIComponent(data.runs[run].id)}`;

const showCase = async (name) => {
  const bucket = bucketOf(name);
  await load(bucket);
  const lines = (arrived.get(bucket) || {})[name];
  if (!lines) return [element("h2", {}, name), element("p", { class: "note" }, "No run of this history has this case.")];
  const rows = lines.map(([engine, runs, statuses, levels]) => element("tr", {}, element("th", { scope: "row" }, engine), ...data.runs.map((_, run) => {
    const place = runs.lastIndexOf(run);
    return element("td", {}, place < 0 ? "·" : element("span", { class: `tag s-${statuses[place]}` }, statuses[place] === "pass" ? levels[place] || "pass" : statuses[place]));
  })));
  return [element("h2", {}, name), table([head("engine"), ...data.runs.map((run, n) => head(run.started.slice(0, 10), runLink(n)))], rows)];
};

const showRun = (id) => {
  const run = data.runs.find((one) => one.id === id);
  if (!run) return [element("h2", {}, id), element("p", { class: "note" }, "This history has no such run.")];
  const statuses = [...new Set(Object.values(run.engines).flatMap((counts) => Object.keys(counts)))].sort();
  const rows = Object.entries(run.engines).map(([engine, counts]) => element("tr", {}, element("th", { scope: "row" }, engine), ...statuses.map((status) => element("td", { class: "n" }, String(counts[status] || "")))));
  const facts = [run.source, run.notice, Object.entries(run.versions).map(([name, version]) => `${name} ${version}`).join(", ")].filter(Boolean);
  return [element("h2", {}, `Run of ${run.started}`), ...facts.map((fact) => element("p", { class: "note" }, fact)), table([head("engine"), ...statuses.map((status) => head(status))], rows)];
};

const show = async () => {
  const given = new URLSearchParams(location.hash.slice(1));
  const box = byId("course");
  try {
    const parts = given.has("case") ? await showCase(given.get("case")) : given.has("run") ? showRun(given.get("run")) : [];
    box.replaceChildren(...parts);
    box.hidden = !parts.length;
    if (parts.length) box.scrollIntoView();
    byId("trouble").hidden = true;
  } catch (problem) {
    byId("trouble").hidden = false;
    byId("trouble").textContent = `This cannot be shown (${problem}).`;
  }
};
byId("find").addEventListener("submit", (event) => {
  event.preventDefault();
  location.hash = `case=${encodeURIComponent(byId("case").value)}`;
});
addEventListener("hashchange", show);
show().then(() => { document.documentElement.dataset.ready = "1"; });
})();
