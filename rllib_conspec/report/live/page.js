// Draws what the server tells (see trial.py), and extends it in place when a point comes.
"use strict";

const $ = (id) => document.getElementById(id);
const SERIES = 8; // colours of style.css
const FEW = 150; // points that are marked one by one
const run = { columns: {}, charts: [], begun: [], told: 0 };
let source;

function make(tag, text, kind) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (kind) element.className = kind;
  return element;
}

const token = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const short = (value) =>
  value === null || value === undefined ? "–" : Number(value.toPrecision(4)).toLocaleString("en");

// --- charts --------------------------------------------------------------------------------------

class Chart {
  constructor({ group, title, curves }) {
    this.curves = curves;
    this.title = title;
    this.drawn = 0; // points that are on the screen; 0: nothing is drawn
    this.seen = false;
    const card = make("figure", undefined, "card");
    card.append(make("h3", title));
    this.plot = make("div", undefined, "plot");
    this.readout = make("figcaption", "", "readout");
    Object.entries({ tabindex: 0, role: "slider", "aria-label": `${title}: values` })
      .forEach(([name, value]) => this.plot.setAttribute(name, value));
    this.plot.addEventListener("keydown", (event) => this.key(event));
    this.plot.addEventListener("blur", () => this.read(null));
    card.append(this.plot, this.readout);
    const section = $(group);
    section.hidden = false;
    section.querySelector(".cards").append(card);
    this.card = card;
    watched.observe(this.plot);
    this.plot.chart = this;
    this.read(null);
  }

  // Only what is on the screen is drawn; the rest follows when it gets there.
  update() {
    if (this.at === undefined || this.at === null) this.read(null);
    if (!this.seen || !window.Plotly) return;
    const length = run.columns[$("x").value].length;
    if (!this.drawn) this.draw();
    else if (length > this.drawn) {
      const part = (name) => (run.columns[name] || []).slice(this.drawn);
      const x = part($("x").value);
      const new_ = { x: this.curves.map(() => x), y: this.curves.map(([name]) => part(name)) };
      Plotly.extendTraces(this.plot, new_, this.curves.map((_, i) => i));
    }
    this.drawn = length;
  }

  draw() {
    const x = run.columns[$("x").value];
    const traces = this.curves.map(([name, label], i) => ({
      name: label, x: x.slice(), y: (run.columns[name] || []).slice(),
      mode: x.length > FEW ? "lines" : "lines+markers",
      line: { color: token(`series-${(i % SERIES) + 1}`), width: 1.8,
        dash: ["solid", "dot", "dash"][Math.floor(i / SERIES) % 3] },
      marker: { size: 4 },
    }));
    Plotly.react(this.plot, traces, this.layout(), { responsive: true, displayModeBar: false });
  }

  layout() {
    const axis = { gridcolor: token("line"), zerolinecolor: token("line"), automargin: true,
      linecolor: token("line-strong") };
    const marks = run.begun.map((begun) => {
      const at = run.columns.training_iteration.findIndex((i) => i > begun);
      const x = at < 0 ? undefined : run.columns[$("x").value][at];
      return { type: "line", x0: x, x1: x, y0: 0, y1: 1, yref: "paper",
        line: { color: token("line-strong"), width: 1, dash: "dot" } };
    }).filter((mark) => mark.x0 !== undefined && mark.x0 !== null);
    return {
      uirevision: "kept", shapes: marks, hovermode: "x unified",
      dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
      margin: { l: 8, r: 8, t: 8, b: 8 },
      paper_bgcolor: "transparent", plot_bgcolor: "transparent",
      font: { color: token("text-quiet"), family: token("font"), size: 12 },
      hoverlabel: { namelength: -1, bgcolor: token("surface"), bordercolor: token("line-strong"),
        font: { color: token("text") } },
      xaxis: { ...axis, title: { text: $("x").selectedOptions[0].text } },
      yaxis: axis,
      showlegend: this.curves.length > 1 && this.curves.length <= SERIES,
      legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0 },
    };
  }

  key(event) {
    const last = run.columns[$("x").value].length - 1;
    const at = this.at ?? last;
    const big = Math.max(1, Math.round(last / 20));
    const to = { ArrowLeft: at - 1, ArrowDown: at - 1, ArrowRight: at + 1, ArrowUp: at + 1,
      PageDown: at - big, PageUp: at + big, Home: 0, End: last, Escape: null }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.read(to === null ? null : Math.min(Math.max(to, 0), last));
  }

  // Say the values at one point, and show them as hovering does; null: those of the last row.
  read(at) {
    const before = this.at ?? null;
    this.at = at;
    const x = run.columns[$("x").value] || [];
    const here = at ?? x.length - 1;
    const values = this.curves.map(([name, label]) => `${label} ${short(run.columns[name]?.[here])}`);
    const shown = values.slice(0, SERIES).join(" · ") + (values.length > SERIES ? " …" : "");
    const where = at === null ? "now" : `${short(x[here])} ${$("x").selectedOptions[0].text}`;
    this.readout.textContent = `${where}: ${shown}`;
    const valued = { valuemin: 0, valuemax: Math.max(x.length - 1, 0), valuenow: Math.max(here, 0),
      valuetext: this.readout.textContent };
    Object.entries(valued).forEach(([name, value]) => this.plot.setAttribute(`aria-${name}`, value));
    if (!this.drawn) return;
    if (at !== null) Plotly.Fx.hover(this.plot, { xval: x[at] }, "xy");
    else if (before !== null) Plotly.Fx.unhover(this.plot); // else the mouse may be there
  }
}

const watched = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    target.chart.seen = isIntersecting;
    if (isIntersecting) target.chart.update();
  }
}, { rootMargin: "200px" });

function redraw() {
  for (const chart of run.charts) {
    chart.at = null;
    chart.drawn = 0;
    chart.update();
  }
}

// --- what the server tells -----------------------------------------------------------------------

function start(told) {
  for (const chart of run.charts) {
    watched.unobserve(chart.plot);
    if (chart.drawn) Plotly.purge(chart.plot);
    chart.card.remove();
  }
  for (const group of ["learning", "models", "machine"]) $(group).hidden = true;
  run.columns = told.columns;
  run.begun = told.begun;
  run.charts = told.charts.map((chart) => new Chart(chart));
  state(told);
  found(told.found);
  standing(told);
}

function rows(told) {
  const length = run.columns.training_iteration.length;
  const more = told.columns.training_iteration?.length ?? 0;
  for (const name of new Set([...Object.keys(run.columns), ...Object.keys(told.columns)])) {
    run.columns[name] ??= new Array(length).fill(null);
    run.columns[name].push(...(told.columns[name] ?? new Array(more).fill(null)));
  }
  const resumed = told.begun.length !== run.begun.length;
  run.begun = told.begun;
  if (resumed) redraw();
  else run.charts.forEach((chart) => chart.update());
  standing(told);
}

function standing(told) {
  $("facts").replaceChildren(factsOf(told.facts));
  $("happened").hidden = !told.log.length;
  const kinds = { incident: "bad", damaged: "warn", hint: "warn", end: "good" };
  $("happened").querySelector("ol").replaceChildren(...told.log.slice().reverse().map((line) => {
    const item = make("li");
    const at = line.at === null ? line.kind : `${line.kind}, iteration ${short(line.at)}`;
    item.append(make("span", at, `badge ${kinds[line.kind] ?? ""}`), line.text);
    return item;
  }));
  $("thinned").textContent =
    told.every > 1 ? `Of a long run, about every ${short(told.every)}th row is drawn.` : "";
  Object.assign(run, { done: told.done, age: told.age, took: told.took ?? 0, told: Date.now() });
  pulse();
}

function state({ state }) {
  $("state").textContent = state;
  $("state").hidden = !state;
  run.failed = state.startsWith("failed");
  pulse();
}

function found(told) {
  $("found").hidden = !told || !(told.lines.length + told.galleries.length + told.notes.length);
  if (!told) return;
  const parts = told.checkpoint ? [make("p", `In ${told.checkpoint}.`, "quiet small")] : [];
  parts.push(...told.lines.map((line) => make("p", line)));
  parts.push(...told.notes.map((line) => make("p", line, "note warn")));
  for (const { title, rows } of told.galleries) {
    parts.push(make("h3", title));
    const cards = make("div", undefined, "cards");
    cards.append(...rows.map(row));
    parts.push(cards);
  }
  $("found").querySelector(".galleries").replaceChildren(...parts);
}

function row({ title, facts, words, frames, new: new_ }) {
  const card = make("article", undefined, "card gallery");
  const head = make("div", undefined, "card-head");
  head.append(make("h4", title));
  if (new_) head.append(make("span", "new", "badge good"));
  card.append(head);
  if (Object.keys(facts).length) card.append(factsOf(facts));
  if (words) card.append(make("p", words));
  const list = make("ul", undefined, "frames");
  list.append(...frames.map((frame) => {
    const item = make("li", undefined, "frame");
    const image = make("img");
    image.src = frame.image;
    image.alt = `${title}, ${frame.caption}`;
    item.append(image, make("span", frame.caption, "caption"));
    return item;
  }));
  if (frames.length) card.append(list);
  return card;
}

function factsOf(facts) {
  const list = make("dl", undefined, "facts");
  list.append(...Object.entries(facts).map(([title, text]) => {
    const fact = make("div");
    fact.append(make("dt", title), make("dd", text));
    return fact;
  }));
  return list;
}

function trials({ title, names, current }) {
  $("title").textContent = title;
  document.title = `${title} – rllib watch`;
  $("trials").hidden = names.length < 2;
  const shown = current && !names.includes(current) ? [current, ...names] : names;
  $("trial").replaceChildren(...shown.map((name) => {
    const option = make("option", name);
    option.selected = name === current;
    return option;
  }));
}

function pulse() {
  const since = (Date.now() - run.told) / 1000 + (run.age ?? 0);
  const show = (text, kind) => {
    $("pulse").className = `badge ${kind}`;
    if ($("pulse").textContent !== text) $("pulse").textContent = text;
  };
  if (source.readyState !== EventSource.OPEN) show("not connected, trying again", "bad");
  else if (!run.told || run.age === null) show("waiting", "warn");
  else if (run.failed) show("failed", "bad");
  else if (run.done) show("finished", "good");
  else if (since < Math.max(60, 5 * run.took)) show("training", "good");
  else show(`no news for ${Math.round(since / 60)} min`, "warn");
}

function connect() {
  source?.close();
  const name = new URLSearchParams(location.search).get("trial");
  source = new EventSource("events" + (name ? `?trial=${encodeURIComponent(name)}` : ""));
  for (const [event, take] of Object.entries({ trials, start, rows, state, found })) {
    source.addEventListener(event, (message) => take(JSON.parse(message.data)));
  }
  source.onopen = source.onerror = pulse;
}

$("trial").addEventListener("change", () => {
  history.replaceState(null, "", `?trial=${encodeURIComponent($("trial").value)}`);
  connect();
});
$("x").addEventListener("change", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
$("plotly").addEventListener("load", redraw);
setInterval(pulse, 1000);
connect();
