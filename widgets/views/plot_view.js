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
const shade = host => getComputedStyle(host).getPropertyValue("--jp-ui-font-color1").trim() || "#333";

function render({ model, el }) {
  const host = document.createElement("div");
  host.className = "mw mw-live mw-plot";
  host.setAttribute("role", "img");
  host.style.cssText = "width:100%;min-width:0;overflow:hidden";
  el.append(host);
  let Plotly, drawing = Promise.resolve(), again = false, gone = false;

  async function paint() {
    const figure = model.get("figure");
    if (!figure.data) return;
    Plotly ??= await plotly(model);
    if (gone) return;
    const layout = { ...figure.layout, autosize: true, height: model.get("height") };
    layout.font = { ...layout.font, color: shade(host) };
    await Plotly.react(host, structuredClone(figure.data), structuredClone(layout), { displaylogo: false, responsive: false });
    host.dataset.drawn = Number(host.dataset.drawn || 0) + 1;
  }
  function draw() {             // while one figure is drawn, only the newest waits
    host.style.height = `${model.get("height")}px`;
    host.setAttribute("aria-label", model.get("label"));
    if (again) return;
    again = true;
    drawing = drawing.then(() => { again = false; return paint(); })
      .catch(error => { host.textContent = `This chart could not be drawn: ${error.message}`; });
  }
  const resized = new ResizeObserver(() => { if (Plotly && host.clientWidth) Plotly.Plots.resize(host); });
  resized.observe(host);
  const themed = new MutationObserver(draw);
  themed.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-name", "data-jp-theme-light"] });
  for (const name of ["figure", "height", "label"]) model.on(`change:${name}`, draw);
  draw();
  return () => { gone = true; resized.disconnect(); themed.disconnect(); if (Plotly) Plotly.purge(host); };
}
export default { initialize, render };
