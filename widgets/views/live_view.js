// Shows the traffic that Python drew; tells Python which pair of devices the reader points at, or walks to by arrow keys.

function render({ model, el }) {
  const root = make("div", "mw mw-live mw-live-view", { "data-lm-suppress-shortcuts": "true" });
  const about = make("div", "mw-live-about", { role: "status", "aria-live": "polite" });
  const parts = make("div", "mw-live-parts"), bars = make("div", "mw-live-bars"), side = make("div", "mw-live-matrix");
  const matrix = make("div", "", { tabindex: 0, role: "application", "aria-label": "who sends how much to whom; arrow keys walk the pairs" });
  const pointed = make("div", "mw-live-pointed", { "aria-live": "polite" });
  const head = make("div", "mw-live-head");
  head.innerHTML = 'By pair of devices<span class="mw-origin">counted</span>';
  const colours = make("div", "mw-live-colours");
  colours.textContent = "Colour: the axis along which the two differ; grey: several.";
  side.append(head, matrix, pointed, colours);
  parts.append(bars, side);
  root.append(about, parts);
  el.append(root);

  function choose(pair) {
    if (String(pair) === String(model.get("pair"))) return;
    model.set("pair", pair);
    model.save_changes();
    mark();
  }
  function mark() {
    const svg = matrix.querySelector("svg"), layer = svg && svg.querySelector(".mw-marks"), [row, column] = model.get("pair");
    if (!layer) return;
    layer.replaceChildren();
    const n = model.get("drawing").devices, edge = Number(svg.dataset.edge), pitch = (svg.viewBox.baseVal.width - edge) / n;
    if (row === undefined || row >= n || column >= n) return;
    const rect = document.createElementNS(NS, "rect");
    const at = { x: edge + column * pitch, y: edge + row * pitch, width: pitch, height: pitch, class: "mw-mark" };
    for (const [key, value] of Object.entries(at)) rect.setAttribute(key, value);
    layer.append(rect);
  }
  function under(event) {
    const svg = matrix.querySelector("svg");
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const n = model.get("drawing").devices, edge = Number(svg.dataset.edge), pitch = (svg.viewBox.baseVal.width - edge) / n;
    const column = Math.floor((at.x - edge) / pitch), row = Math.floor((at.y - edge) / pitch);
    return row >= 0 && column >= 0 && row < n && column < n ? [row, column] : [];
  }
  matrix.addEventListener("pointermove", event => choose(under(event)));
  matrix.addEventListener("pointerleave", () => choose([]));
  matrix.addEventListener("keydown", event => {
    const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === "Escape") { choose([]); return; }
    if (!by) return;
    event.preventDefault();
    const n = model.get("drawing").devices, [row, column] = model.get("pair");
    const within = value => Math.min(Math.max(value, 0), n - 1);
    choose(row === undefined ? [0, 0] : [within(row + by[0]), within(column + by[1])]);
  });
  root.addEventListener("keydown", event => event.stopPropagation());
  function draw() {
    const drawing = model.get("drawing"), list = bars.querySelector(".mw-live-steps"), top = list ? list.scrollTop : 0;
    const held = list && list === document.activeElement;
    bars.innerHTML = drawing.bars;
    matrix.innerHTML = drawing.matrix;
    about.innerHTML = drawing.about;
    root.dataset.events = drawing.events;
    const now = bars.querySelector(".mw-live-steps");
    if (now) { now.scrollTop = top; if (held) now.focus({ preventScroll: true }); }
    mark();
  }
  const say = () => { pointed.innerHTML = model.get("pointed"); };
  model.on("change:drawing", draw);
  model.on("change:pair", mark);
  model.on("change:pointed", say);
  draw(); say();
}
export default { render };
