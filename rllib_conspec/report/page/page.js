// Draws the figures that the page carries, in the colours of its style sheet, once they come near the
// window. Every figure can be walked through with the arrow keys, which show what hovering shows.
"use strict";

const figures = JSON.parse(document.getElementById("figures").textContent);
const narrow = window.matchMedia("(max-width: 40rem)");
const drawn = new Set();

function token(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

function faded(colour) {
  const [r, g, b] = [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));
  return `rgba(${r}, ${g}, ${b}, 0.18)`;
}

function coloured(trace) {
  const colour = trace.series ? token("series-" + trace.series) : token("text-quiet");
  const copy = { showlegend: false, ...trace };
  if (trace.quiet) return { ...copy, opacity: 0.45, line: { color: token("text-quiet"), width: 1 },
    marker: { color: token("text-quiet"), size: 4 } };
  if (trace.band) return { ...copy, fillcolor: faded(colour) };
  copy.line = { ...trace.line, color: colour };
  copy.marker = { ...trace.marker, color: colour };
  return copy;
}

function layout(own) {
  const axis = {
    gridcolor: token("line"),
    zeroline: false,
    linecolor: token("line-strong"),
    automargin: true,
    fixedrange: true,
    nticks: narrow.matches ? 5 : 8,
  };
  const titled = (given) => ({ ...axis, ...given, title: { standoff: 10, font: { size: 13 }, ...given.title } });
  return {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: token("font"), size: 13, color: token("text-quiet") },
    margin: { l: 48, r: 12, t: 10, b: 44 },
    hovermode: "x unified",
    hoverlabel: {
      bgcolor: token("surface"),
      bordercolor: token("line-strong"),
      font: { color: token("text"), family: token("font"), size: 13 },
      namelength: narrow.matches ? 24 : -1,
    },
    ...own,
    xaxis: titled(own.xaxis),
    yaxis: titled(own.yaxis),
  };
}

function draw(plot) {
  const figure = figures[plot.dataset.figure];
  const options = { displayModeBar: false, responsive: true };
  drawn.add(plot);
  return Plotly.react(plot, figure.data.map(coloured), layout(figure.layout), options);
}

// --- the keyboard ---------------------------------------------------------------------------------

function walk(plot, step) {
  const data = figures[plot.dataset.figure].data;
  const lines = data.filter((t) => t.mode.startsWith("lines") && !t.band && !t.quiet);
  if (!lines.length) return;
  const xs = [...new Set(lines.flatMap((t) => t.x))].sort((a, b) => a - b);
  const before = plot.walked ?? (step > 0 ? -1 : xs.length);
  const stride = Math.max(1, Math.round(xs.length / 100));
  plot.walked = Math.min(xs.length - 1, Math.max(0, before + step * stride));
  const at = xs[plot.walked];
  const words = [];
  for (const trace of lines) {
    let nearest = 0;
    trace.x.forEach((x, i) => {
      if (Math.abs(x - at) < Math.abs(trace.x[nearest] - at)) nearest = i;
    });
    words.push(`${trace.name}: ${trace.text?.[nearest] ?? trace.y[nearest] ?? "nothing"}`);
  }
  Plotly.Fx.hover(plot, { xval: at }, ["xy"]);
  const axis = figures[plot.dataset.figure].layout.xaxis.title.text;
  document.getElementById("said").textContent = (axis ? `${axis} ${at}; ` : "") + words.join("; ");
}

function listen(plot) {
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step && drawn.has(plot)) {
      event.preventDefault();
      walk(plot, step);
    } else if (event.key === "Escape") {
      Plotly.Fx.unhover(plot);
    }
  });
  plot.addEventListener("blur", () => drawn.has(plot) && Plotly.Fx.unhover(plot));
}

// --- figures with a choice of x-axes ------------------------------------------------------------------

for (const button of document.querySelectorAll("button[data-shows]")) {
  button.addEventListener("click", () => {
    for (const other of document.querySelectorAll("button[data-shows]")) {
      other.setAttribute("aria-pressed", String(other.dataset.shows === button.dataset.shows));
    }
    for (const plot of document.querySelectorAll(".plot[data-choice]")) {
      plot.dataset.figure = `${plot.dataset.choice}-${button.dataset.shows}`;
      plot.walked = undefined;
      if (drawn.has(plot)) draw(plot);
    }
  });
}

const near = new IntersectionObserver(
  (entries) => {
    for (const entry of entries.filter((e) => e.isIntersecting)) {
      near.unobserve(entry.target);
      draw(entry.target);
    }
  },
  { rootMargin: "400px" },
);

for (const plot of document.querySelectorAll(".plot[data-figure]")) {
  listen(plot);
  near.observe(plot);
}
const again = () => drawn.forEach(draw);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
narrow.addEventListener("change", again);
