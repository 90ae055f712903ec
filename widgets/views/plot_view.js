// One Plotly for the whole page, asked for by the first chart; then Plotly.react with each new figure.
const KEY = "__meshwork_plotly__";

async function load(packed) {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const source = await new Response(stream).text();
  // as a module of its own, so that the bundle does not hand itself to a `define` that the page may have
  const wrapped = `const module = { exports: {} }, exports = module.exports, define = undefined;\n${source}\nexport default module.exports;`;
  const address = URL.createObjectURL(new Blob([wrapped], { type: "text/javascript" }));
  try { return (await import(/* webpackIgnore: true */ address)).default; }
  finally { URL.revokeObjectURL(address); }
}
function plotly(model) {
  globalThis[KEY] ??= {};
  const shared = globalThis[KEY];
  shared.ready ??= new Promise((resolve, reject) => {
    shared.take = packed => load(packed).then(resolve, reject);
    model.send({ want: "plotly" });
    setTimeout(() => { shared.ready = shared.done ? shared.ready : undefined; reject(new Error("the kernel did not send plotly")); }, 60000);
  });
  shared.ready.then(() => { shared.done = true; }, () => {});
  return shared.ready;
}
// the answer belongs to the model, which outlives the view that asked
function initialize({ model }) {
  model.on("msg:custom", (content, buffers) => { if (content.plotly) globalThis[KEY]?.take?.(buffers[0]); });
}
// The points of a figure as [curve, point, words], in reading order; what a bar or a star says to a pointer.
function pointsOf({ data }) {
  const say = (value, n) => (Array.isArray(value) ? value[n] : value);
  return data.flatMap((trace, curve) => (trace.hoverinfo === "skip" || trace.visible === false ? [] : [...(trace.y || [])].map((y, n) =>
    [curve, n, say(trace.hovertext, n) || [trace.name, `${say(trace.x, n)}: ${say(trace.text, n) || y}`].filter(Boolean).join(", ")])));
}
const shade = host => getComputedStyle(host).getPropertyValue("--jp-ui-font-color1").trim() || "#333";

function render({ model, el }) {
  const host = document.createElement("div");
  host.className = "mw mw-live mw-plot";
  for (const [key, value] of Object.entries({ role: "application", tabindex: 0, "data-lm-suppress-shortcuts": "true" })) host.setAttribute(key, value);
  const read = document.createElement("div");  // outside the chart, which plotly empties
  read.setAttribute("aria-live", "polite");
  read.className = "mw-heard";
  host.style.cssText = "width:100%;min-width:0;overflow:hidden";
  el.append(host, read);
  let at = -1, Plotly, drawing = Promise.resolve(), again = false, gone = false;

  async function paint() {
    const figure = model.get("figure");
    if (!figure.data) return;
    Plotly ??= await plotly(model);
    if (gone) return;
    const layout = { ...figure.layout, autosize: true, height: model.get("height") };
    layout.font = { ...layout.font, color: shade(host) };
    await Plotly.react(host, structuredClone(figure.data), structuredClone(layout), { displayModeBar: false, responsive: false });
    host.dataset.drawn = Number(host.dataset.drawn || 0) + 1;
  }
  function draw() {             // while one figure is drawn, only the newest waits
    host.style.height = `${model.get("height")}px`;
    host.setAttribute("aria-label", `${model.get("label")}; arrow keys walk its points`);
    if (again) return;
    again = true;
    drawing = drawing.then(() => { again = false; return paint(); })
      .catch(error => { host.textContent = `This chart could not be drawn: ${error.message}`; });
  }
  function walk(event) {
    const points = Plotly ? pointsOf(model.get("figure")) : [], last = points.length - 1;
    const to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: last, Escape: -1 }[event.key];
    event.stopPropagation();
    if (to === undefined || last < 0) return;
    event.preventDefault();
    at = event.key === "Escape" ? -1 : Math.min(Math.max(to, 0), last);
    const [curveNumber, pointNumber, words] = points[at] || [];
    read.textContent = (words || "").replace(/<[^>]*>/g, " ");
    if (at < 0) Plotly.Fx.unhover(host);
    else Plotly.Fx.hover(host, [{ curveNumber, pointNumber }]);
  }
  host.addEventListener("keydown", walk);
  host.addEventListener("blur", () => { at = -1; read.textContent = ""; if (Plotly) Plotly.Fx.unhover(host); });
  const resized = new ResizeObserver(() => { if (Plotly && host.clientWidth) Plotly.Plots.resize(host); });
  resized.observe(host);
  const themed = new MutationObserver(draw);
  themed.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-name", "data-jp-theme-light"] });
  for (const name of ["figure", "height", "label"]) model.on(`change:${name}`, draw);
  draw();
  return () => { gone = true; resized.disconnect(); themed.disconnect(); if (Plotly) Plotly.purge(host); };
}
export default { initialize, render };
