"use strict";
// What moves on the page. `compute(v)` is made from Python's formulas and stands before this text.
const data = JSON.parse(document.getElementById("data").textContent);
const keptBy = (preset, stage) => (Object.hasOwn(preset, stage) ? preset[stage] : 1);
const byId = (id) => document.getElementById(id);
const PREFIXES = [["E", 1e18], ["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]];

// As refinery.pipelines.recipe.quantities.quantity formats; a test compares the two.
function threeDigits(value) {
  const rounded = value.toExponential(2);
  const [whole, rest] = Number(rounded).toFixed(Math.min(100, Math.max(0, 2 - Number(rounded.split("e")[1])))).split(".");
  const end = (rest || "").replace(/0+$/, "");
  return whole.replace(/\B(?=(\d{3})+$)/g, ",") + (end ? "." + end : "");
}
function show(value, kind) {
  if (!Number.isFinite(value)) return "–";
  if (kind === "count") return value.toFixed(0).replace(/\B(?=(\d{3})+$)/g, ",");
  if (kind === "share") return threeDigits(value * 100) + " %";
  if (kind === "dollars") return "$" + threeDigits(value);
  if (!(kind in data.units)) return threeDigits(value);
  const rounded = Number(value.toExponential(2));
  const [prefix, factor] = PREFIXES.find((each) => rounded >= each[1]) || ["", 1];
  const space = prefix && kind.startsWith("tokens") ? " " : "";
  return threeDigits(rounded / factor) + " " + prefix + space + data.units[kind];
}

// "14.8T" or "6 PB" -> number, NaN for anything else. grammar: "count" or "bytes".
function parse(text, grammar) {
  const found = new RegExp("^(?:" + data.grammars[grammar] + ")$").exec(text);
  return found ? Number(found[1].replaceAll("_", "")) * data.factors[(found[2] || "").toLowerCase()] : NaN;
}
// What "100B" of bytes could mean, "" for all other texts.
function readings(text, grammar) {
  const found = grammar === "bytes" ? new RegExp("^(?:" + data.bare + ")$").exec(text) : null;
  const n = found ? found[1] : "";
  return n && `${n} bytes or ${n} billion? write ${n} bytes or ${n} GB`;
}

function inputValue(each) {
  const value = parse(byId("in-" + each.name).value, each.read);
  const fits = value <= data.most && value >= each.least && (value > 0 || each.free);
  byId("in-" + each.name).setAttribute("aria-invalid", String(!fits));
  return fits ? value : NaN;
}

// Which input was computed so that the target is met exactly; of that nothing can be said. A changed field ends it.
let derived = data.derived;
const DERIVED = {
  raw: "The raw bytes were computed from the target",
  tokens: "No target was given: what comes out is taken for it",
};

function drawBar(name, part, text) {
  byId("bar-" + name).value = Number.isFinite(part) ? Math.min(1, part) : 0;
  byId("text-" + name).textContent = text;
}

// What is left behind each stage, and the parts of the cost.
function drawCharts(v, kept) {
  let left = v.raw;
  drawBar("raw", 1, show(v.raw, "bytes"));
  for (const stage of data.stages) {
    left *= kept[stage];
    drawBar(stage, left / v.raw, show(left, "bytes"));
    byId("bar-" + stage).closest("div").hidden = kept[stage] === 1;
  }
  const most = Math.max(...data.costs.map((name) => v[name]));
  for (const name of data.costs) drawBar(name, most > 0 ? v[name] / most : 0, show(v[name], "dollars"));
}

function changed() {
  derived = "";
  update();
}

function update() {
  const v = {};
  for (const each of data.inputs) v[each.name] = inputValue(each);
  const kept = {};
  v.retention = 1;
  for (const stage of data.stages) {
    const field = byId("kept-" + stage);
    const value = field.value === "" ? NaN : Number(field.value);
    const fits = value > 0 && value <= data.mostKept;
    field.setAttribute("aria-invalid", String(!fits));
    kept[stage] = fits ? value : NaN;
    v.retention *= kept[stage];
  }
  compute(v);
  for (const each of data.outputs) {
    const field = byId("out-" + each.name);
    field.textContent = derived && each.name === "target_share" ? "–" : show(v[each.name], each.kind);
    field.dataset.value = String(v[each.name]);
  }
  drawCharts(v, kept);
  const met = v.target_share >= data.met;
  const known = Number.isFinite(v.target_share);
  byId("meter").className = "meter " + (known && derived ? "open" : met ? "good" : "bad");
  byId("track").setAttribute("aria-valuenow", known ? String(Math.min(100, Math.round(v.target_share * 100))) : "0");
  byId("fill").style.width = known ? Math.min(100, v.target_share * 100) + "%" : "0";
  const bare = data.inputs.map((each) => readings(byId("in-" + each.name).value, each.read)).find((said) => said);
  byId("verdict").textContent = !known ? bare || "One of the fields holds no number that a plan can have"
    : derived ? DERIVED[derived] : met ? "The target is met" : "The target is missed";
  byId("amount").textContent = known && derived ? show(v.raw, "bytes") + " give " + show(v.output_tokens, "tokens") : known
    ? show(v.output_tokens, "tokens") + " of " + show(v.tokens, "tokens") + ": " + show(v.target_share, "share") : "";
  byId("fit").hidden = met || !known;
  byId("fit").textContent = "Read what it takes: " + show(v.raw_needed, "bytes");
  byId("fit").value = String(v.raw_needed);
  for (const button of document.querySelectorAll("[data-preset]")) {
    const preset = data.presets[button.dataset.preset];
    const same = data.stages.every((stage) => Number(byId("kept-" + stage).value) === keptBy(preset, stage));
    button.setAttribute("aria-pressed", String(same));
  }
}

function setKept(stage, value) {
  byId("kept-" + stage).value = value;
  byId("slide-" + stage).value = value;
}

for (const stage of data.stages) {
  byId("slide-" + stage).addEventListener("input", (event) => { setKept(stage, event.target.value); changed(); });
  byId("kept-" + stage).addEventListener("input", (event) => { byId("slide-" + stage).value = event.target.value; changed(); });
}
for (const each of data.inputs) byId("in-" + each.name).addEventListener("input", changed);
for (const button of document.querySelectorAll("[data-preset]")) {
  button.addEventListener("click", () => {
    for (const stage of data.stages) setKept(stage, keptBy(data.presets[button.dataset.preset], stage));
    changed();
  });
}
byId("fit").addEventListener("click", (event) => {
  // Rounded up, so that rounding does not leave the target missed by a token.
  const step = 10 ** (Math.floor(Math.log10(Number(event.target.value))) - 3);
  byId("in-raw").value = String(Math.ceil(Number(event.target.value) / step) * step);
  changed();
  byId("in-raw").focus();
});
update();
