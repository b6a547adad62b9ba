// SPDX-License-Identifier: MIT
// The page: reads the records, keeps those that the filters let through, and fills the sections from them. The filters are in the
// address, after #, so that a view can be linked.
"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);
const FILTERS = [["device", "Device"], ["op", "Operation"], ["dtype", "Type"], ["set", "Set"], ["network", "Network"]];
const MOST_ROWS = 60, MOST_COLUMNS = 400, BEST_OF = 8;

// A record: {problem, kernel, status, us, us2, predicted, spread, roof, reason, repro}; problem.records are its own.
const problems = DATA.problems.map((one) => ({ ...one, records: [] }));
const records = DATA.records.problem.map((at, i) => {
  const column = (name) => (DATA.records[name] ? DATA.records[name][i] : null);
  const record = { problem: problems[at], kernel: DATA.kernels[column("kernel")], status: DATA.statuses[column("status")], us: column("us"),
                   us2: column("us2"), predicted: column("predicted"), spread: column("spread"), roof: column("roof") };
  record.valid = record.status === "ok" && record.us > 0;
  record.problem.records.push(record);
  return record;
});
for (const [i, reason, repro] of DATA.failures) Object.assign(records[i], { reason, repro });

const families = [...new Set(DATA.kernels.map((kernel) => kernel.family))].sort();
const colour = Object.fromEntries(families.map((name, i) => [name, PALETTE[i % PALETTE.length]]));
for (const problem of problems) {
  problem.valid = problem.records.filter((record) => record.valid).sort((a, b) => a.us - b.us);
  problem.best = problem.valid[0] || null;
  problem.ranked = problem.valid.filter((record) => record.predicted > 0).sort((a, b) => a.predicted - b.predicted);
  problem.choice = problem.ranked[0] || null;
}

const $ = (selector) => document.querySelector(selector);
const fill = (selector, ...nodes) => $(selector).replaceChildren(...nodes);
const code = (text) => make("code", {}, text);
const family = (name) => make("span", { class: "family" }, make("i", { class: "dot", style: `background:${colour[name]}` }), name);
const tflops = (record) => record.problem.flops / record.us / 1e6;
// The part of the best speed that the model's choice has, or the best of its first few.
const efficiency = (problem, first = 1) => problem.best.us / Math.min(...problem.ranked.slice(0, first).map((record) => record.us));

// ---- sections ------------------------------------------------------------------------------------------------------

function summary(kept) {
  const mine = kept.flatMap((problem) => problem.records), best = kept.filter((problem) => problem.best);
  const roofs = best.map((problem) => problem.best.roof).filter((roof) => roof > 0);
  const chosen = best.filter((problem) => problem.choice);
  fill("#summary .cards", card(shown(kept.length), "problems"), card(shown(new Set(mine.map((r) => r.kernel)).size), "kernels"),
       card(shown(mine.length), "records"), card(percent(mine.filter((r) => r.valid).length / (mine.length || NaN)), "valid"),
       card(shown(Math.max(...best.map((problem) => tflops(problem.best)))), "TFLOPS at most"),
       card(percent(quantile(roofs, 0.5), 0), "of the roof, median"),
       card(percent(chosen.length ? mean(chosen.map((p) => efficiency(p))) : NaN), "of best by choice"));
}

function noise(kept) {
  const twice = kept.flatMap((problem) => problem.valid).filter((record) => record.us2 > 0);
  const apart = twice.map((record) => Math.abs(record.us2 / record.us - 1));
  const left = make("div", {}, make("p", {}, `${shown(apart.length)} times taken twice: ${percent(quantile(apart, 0.5), 2)} apart at the ` +
    `median, ${percent(quantile(apart, 0.95), 2)} at P95.`),
    bars(counted(apart, [["< 0.2 %", 0.002], ["0.2 – 0.5 %", 0.005], ["0.5 – 1 %", 0.01], ["1 – 2 %", 0.02], ["2 – 5 %", 0.05], ["> 5 %", Infinity]])));
  const reference = DATA.reference, right = make("div");
  if (reference.length > 1) {
    const times = reference.map((one) => one[1]), drift = Math.max(...times) / Math.min(...times) - 1;
    right.append(make("p", {}, `The reference kernel took ${shown(quantile(times, 0.5))} µs; most and least are ${percent(drift)} apart.`),
                 scatter([], [{ colour: "var(--accent)", points: reference.map((one, i) => [i, one[1]]) }], ["in the order of measuring", "µs"],
                         { plain: true, height: 170, width: 520 }));
  } else {
    right.append(make("p", { class: "dim" }, "The records have no times of a reference kernel."));
  }
  fill("#noise .row", left, right);
}

function familyTable(kept) {
  const measured = kept.filter((problem) => problem.best);
  const rows = families.map((name) => {
    const mine = kept.flatMap((problem) => problem.records.filter((record) => record.kernel.family === name));
    const wins = measured.filter((problem) => problem.best.kernel.family === name);
    const slower = measured.flatMap((problem) => {
      const own = problem.valid.find((record) => record.kernel.family === name);
      return own ? [own.us / problem.best.us] : [];
    });
    return { name, mine, wins, slower, failed: mine.filter((record) => !record.valid).length };
  }).filter((row) => row.mine.length).sort((a, b) => b.wins.length - a.wins.length);
  fill("#families .wide", table([["family"], ["kernels", 1], ["records", 1], ["failed", 1], ["problems", 1], ["wins", 1], ["of all", 1],
    ["roof when it wins", 1], ["slowdown, median", 1]],
    rows.map((row) => [family(row.name), shown(new Set(row.mine.map((r) => r.kernel)).size), shown(row.mine.length), shown(row.failed),
      shown(row.slower.length), shown(row.wins.length), percent(row.wins.length / measured.length, 0),
      percent(quantile(row.wins.map((p) => p.best.roof).filter((x) => x > 0), 0.5), 0), shown(quantile(row.slower, 0.5)) + "×"]), 50));
}

function roofline(kept) {
  const measured = kept.filter((problem) => problem.best), roofs = {};
  const points = measured.map((problem) => {
    const x = problem.flops / problem.bytes, y = tflops(problem.best), roof = problem.best.roof;
    if (roof > 0) (roofs[problem.device + problem.dtype] = roofs[problem.device + problem.dtype] || []).push([x, y / roof]);
    return { x, y, colour: colour[problem.best.kernel.family],
             text: `${problem.text}\n${problem.best.kernel.name}\n${shown(problem.best.us)} µs, ${shown(y)} TFLOPS, ${percent(roof)} of the roof` };
  });
  const lines = Object.values(roofs).map((line) => ({ colour: "var(--dim)", points: line.sort((a, b) => a[0] - b[0]) }));
  const seen = families.filter((name) => measured.some((problem) => problem.best.kernel.family === name));
  fill("#roofline .chart", scatter(points, lines, ["operations per byte", "TFLOPS"]), legend(seen.map((name) => [name, colour[name]])));
}

function regret(kept) {
  const chosen = kept.filter((problem) => problem.choice);
  if (!chosen.length) {
    fill("#regret .cards");
    return fill("#regret .row", make("p", { class: "dim" }, "The records have no predicted times."));
  }
  const parts = chosen.map((problem) => efficiency(problem)), first = chosen.map((problem) => efficiency(problem, BEST_OF));
  fill("#regret .cards", card(percent(mean(parts)), "of the best, mean"), card(percent(quantile(parts, 0.5)), "median"),
       card(percent(quantile(parts, 0.1)), "P10"), card(percent(Math.min(...parts)), "least"),
       card(percent(parts.filter((x) => x >= 0.99).length / parts.length, 0), "within 1 %"), card(percent(mean(first)), `best of ${BEST_OF}, mean`));
  const worst = [...chosen].sort((a, b) => efficiency(a) - efficiency(b)).filter((problem) => efficiency(problem) < 1);
  fill("#regret .row",
       make("div", {}, bars(counted(parts, [["< 50 %", 0.5], ["50 – 80 %", 0.8], ["80 – 90 %", 0.9], ["90 – 95 %", 0.95], ["95 – 99 %", 0.99],
         ["99 – 100 %", 0.9999999], ["the best", Infinity]]))),
       make("div", { class: "wide" }, table([["problems that lose most"], ["of the best", 1], ["chosen", 0], ["best", 0]],
         worst.map((p) => [code(p.text), percent(efficiency(p)), family(p.choice.kernel.family), family(p.best.kernel.family)]), 5)));
}

function heat(kept) {
  let columns = kept.filter((problem) => problem.best);
  const wins = new Map();
  for (const problem of columns) wins.set(problem.best.kernel, (wins.get(problem.best.kernel) || 0) + 1);
  const near = new Map();  // how close a kernel comes, where none of its wins tells
  for (const problem of columns) {
    for (const record of problem.valid) near.set(record.kernel, (near.get(record.kernel) || 0) + problem.best.us / record.us);
  }
  const rows = [...near.keys()].sort((a, b) => (wins.get(b) || 0) - (wins.get(a) || 0) || near.get(b) - near.get(a)).slice(0, MOST_ROWS);
  columns.sort((a, b) => a.op.localeCompare(b.op) || a.flops - b.flops);
  const all = columns.length;
  if (all > MOST_COLUMNS) columns = columns.filter((_, i) => Math.floor(i * MOST_COLUMNS / all) !== Math.floor((i - 1) * MOST_COLUMNS / all));
  if (!rows.length) return fill("#heat .chart", make("p", { class: "dim" }, "None."));
  const found = columns.map((problem) => new Map(problem.records.map((record) => [record.kernel, record])));
  const value = (row, column) => {
    const record = found[column].get(rows[row]);
    return !record || record.status === "rejected" ? null : record.valid ? record.us / columns[column].best.us : NaN;
  };
  const text = (row, column) => {
    const record = found[column].get(rows[row]), ratio = value(row, column);
    const told = ratio === null ? "not measured" : Number.isNaN(ratio) ? record.status : `${shown(record.us)} µs, ${shown(ratio)}× the best`;
    return `${columns[column].text}\n${rows[row].name}\n${told}`;
  };
  const scale = [1, 1.05, 1.2, 1.5, 2, 4].map((ratio) => [ratio + "×", heatColour(ratio)]);
  fill("#heat .chart", heatMap(rows.length, columns.length, value, text),
       legend([...scale, ["failed", "var(--text)"], ["not measured", "var(--none)"]]),
       make("p", { class: "dim" }, `${rows.length} of ${near.size} kernels on ${columns.length} of ${all} problems.`));
}

function shapes(kept) {
  const rows = kept.filter((problem) => problem.best).map((problem) => [code(problem.text), problem.network, code(problem.best.kernel.name),
    family(problem.best.kernel.family), shown(problem.best.us), shown(tflops(problem.best)), percent(problem.best.roof, 0),
    problem.choice ? percent(efficiency(problem)) : "–"]);
  fill("#shapes .wide", table([["problem"], ["network"], ["fastest kernel"], ["family"], ["µs", 1], ["TFLOPS", 1], ["of the roof", 1],
    ["choice", 1]], rows));
}

function failures(kept) {
  const failed = kept.flatMap((problem) => problem.records).filter((record) => !record.valid), groups = new Map();
  for (const record of failed) {
    const key = record.status + "\n" + (record.reason || "");
    groups.set(key, [...(groups.get(key) || []), record]);
  }
  const rows = [...groups.values()].sort((a, b) => b.length - a.length).map((group) => {
    const copy = make("button", { type: "button" }, "Copy");
    copy.onclick = () => navigator.clipboard && navigator.clipboard.writeText(group[0].repro);
    return [make("span", { class: "bad" }, group[0].status), shown(group.length), group[0].reason || "", code(group[0].repro || ""), copy];
  });
  fill("#failures .wide", table([["status"], ["records", 1], ["reason"], ["to see one again"], [""]], rows));
}

// ---- filters -------------------------------------------------------------------------------------------------------

const wanted = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

function show() {
  const want = wanted(), text = (want.text || "").toLowerCase();
  const kept = problems.filter((problem) => FILTERS.every(([name]) => !want[name] || problem[name] === want[name]) &&
    (!text || problem.text.toLowerCase().includes(text)));
  for (const section of [summary, noise, familyTable, roofline, regret, heat, shapes, failures]) section(kept);
  for (const input of document.querySelectorAll("#filters [name]")) input.value = want[input.name] || "";
  document.body.dataset.ready = kept.length;
}

function setFilter(name, value) {
  const want = { ...wanted(), [name]: value };
  location.hash = new URLSearchParams(Object.entries(want).filter(([, one]) => one)).toString();
}

function makeFilters() {
  const box = make("div");
  for (const [name, title] of FILTERS) {
    const values = [...new Set(problems.map((problem) => problem[name]))].filter(Boolean).sort();
    if (values.length < 2) continue;
    const select = make("select", { name }, make("option", { value: "" }, "all"), ...values.map((value) => make("option", { value }, value)));
    select.onchange = () => setFilter(name, select.value);
    box.append(make("label", {}, title, select));
  }
  const search = make("input", { name: "text", type: "search", placeholder: "m=4096" }), reset = make("button", { type: "button" }, "Reset");
  search.onchange = () => setFilter("text", search.value);
  reset.onclick = () => { location.hash = ""; };
  box.append(make("label", {}, "Problem has", search), reset);
  fill("#filters", box);
  $("#filters").onsubmit = (event) => event.preventDefault();
}

$("#origin").textContent = DATA.origin;
makeFilters();
addEventListener("hashchange", show);
show();
