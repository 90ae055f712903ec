// Shows panels drawn in Python, finds the piece under the pointer, and marks one device's slice in every panel.
const between = (edges, at) => edges.findIndex((edge, n) => at >= edge && at < edges[n + 1]);

function pieceAt({ boxes, xs, ys }, x, y) {
  const rows = ys.length - 1, columns = xs.length - 1;
  for (const [box, [left, top]] of boxes.entries()) {
    const column = between(xs, x - left), row = between(ys, y - top);
    if (column >= 0 && row >= 0) return (box * rows + row) * columns + column;
  }
  return -1;
}
function place({ boxes, xs, ys }, piece) {
  const rows = ys.length - 1, columns = xs.length - 1;
  const box = Math.floor(piece / (rows * columns)), row = Math.floor(piece / columns) % rows, column = piece % columns;
  if (!boxes[box]) return null;
  return { x: boxes[box][0] + xs[column], y: boxes[box][1] + ys[row],
    width: xs[column + 1] - xs[column], height: ys[row + 1] - ys[row] };
}
function ranges({ dims, local, holds }, device) {
  let piece = holds[device];
  return dims.map((dim, n) => [dim, n]).reverse().map(([dim, n]) => {
    const block = piece % dim.parts, size = local[n];
    piece = Math.floor(piece / dim.parts);
    return `${dim.name} ${block * size}${size > 1 ? `–${(block + 1) * size - 1}` : ""}`;
  }).reverse().join(", ") || "the one value";
}
function coordinates(mesh, device) {
  return [...mesh].reverse().map(([axis, size]) => { const at = device % size; device = Math.floor(device / size); return `${axis} ${at}`; })
    .reverse().join(", ");
}
function render({ model, el }) {
  const own = `v${Math.random().toString(36).slice(2)}`;
  const root = make("div", "mw mw-live mw-slices", { "data-lm-suppress-shortcuts": "true" });
  const panels = make("div", "mw-panels");
  const readout = make("div", "mw-readout", { tabindex: 0, "aria-live": "polite", "aria-label": "what the chosen device holds" });
  root.append(panels, readout);
  el.append(root);
  let drawing = model.get("drawing"), hovered = -1, pointed = -1;

  const shown = () => (hovered >= 0 ? hovered : model.get("device"));
  function outline(layer, where, piece, classes) {
    for (const cls of classes) {
      const rect = document.createElementNS(NS, "rect");
      for (const [key, value] of Object.entries({ ...where, class: cls, "data-piece": piece })) rect.setAttribute(key, value);
      layer.append(rect);
    }
  }
  function mark() {
    const device = shown();
    root.dataset.device = device;
    panels.querySelectorAll(".mw-marks").forEach((layer, n) => {
      const { grid, facts } = drawing.panels[n], piece = facts.holds[device];
      layer.replaceChildren();
      if (n === 0) for (const copy of copies()) outline(layer, place(grid, copy), copy, ["mw-mark mw-halo", "mw-mark mw-copy"]);
      const where = piece === undefined ? null : place(grid, piece);
      if (where) outline(layer, where, piece, ["mw-mark mw-halo", "mw-mark"]);
    });
    say(device);
  }
  // the other devices with the piece under the pointer, to be outlined in the mesh
  function copies() {
    if (pointed < 1 || hovered < 0) return [];
    const { holds } = drawing.panels[pointed].facts, { grid } = drawing.panels[0];
    return holds.flatMap((piece, device) => (piece === holds[hovered] && device !== hovered && place(grid, device) ? [device] : []));
  }
  function say(device) {
    const [mesh, ...tensors] = drawing.panels;
    if (device < 0 || !mesh) { readout.textContent = "Point at a device, or click it, to see what it holds. Arrow keys walk the mesh."; return; }
    const head = make("div");
    head.textContent = `Device ${device} (${coordinates(mesh.facts.mesh, device)})`;
    readout.replaceChildren(head, ...tensors.map(({ facts }) => {
      const line = make("div", "", { "data-holds": facts.name });
      const same = facts.holds.filter(piece => piece === facts.holds[device]).length - 1;
      const copies = facts.partial.length ? "; one addend of a sum" : same ? `; ${same === 1 ? "1 other device holds" : `${same} other devices hold`} the same` : "";
      line.textContent = `${facts.name}: ${ranges(facts, device)} · ${facts.each}${copies}`;
      return line;
    }));
    const values = model.get("values");
    if (values.tensors && values.device === device) readout.append(valueTables(values.tensors));
  }
  function valueTables(tensors) {
    const all = make("div", "mw-values");
    for (const { name, text, rows } of tensors) {
      const one = make("div", "", { "data-values": name });
      const head = make("div");
      head.textContent = `${name} = ${text}`;
      const table = make("table");
      for (const row of rows) {
        const tr = make("tr");
        tr.append(...row.map(value => { const td = make("td"); td.textContent = value; return td; }));
        table.append(tr);
      }
      one.append(head, table);
      all.append(one);
    }
    return all;
  }
  function under(event) {
    const slot = event.target.closest?.(".mw-slot");
    if (!slot) return -1;
    pointed = [...panels.children].indexOf(slot);
    const { grid, facts } = drawing.panels[pointed];
    const svg = slot.querySelector("svg");
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const piece = pieceAt(grid, at.x, at.y);
    return piece < 0 ? -1 : facts.holds.indexOf(piece);
  }
  function choose(device) {
    model.set("device", device);
    model.save_changes();
    mark();
  }
  function walk(event) {
    const mesh = drawing.panels[0].facts.mesh, last = mesh.length - 1;
    const stride = axis => mesh.slice(axis + 1).reduce((product, [, n]) => product * n, 1);
    const steps = { ArrowRight: [last, 1], ArrowLeft: [last, -1], ArrowDown: [Math.max(last - 1, 0), 1], ArrowUp: [Math.max(last - 1, 0), -1],
      PageDown: [Math.max(last - 2, 0), 1], PageUp: [Math.max(last - 2, 0), -1] };
    if (event.key === "Escape") { choose(-1); return; }
    if (!steps[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    const [axis, by] = steps[event.key], device = model.get("device");
    if (device < 0) { choose(0); return; }
    const at = Math.floor(device / stride(axis)) % mesh[axis][1];
    if (at + by >= 0 && at + by < mesh[axis][1]) choose(device + by * stride(axis));
  }
  function draw() {
    drawing = model.get("drawing");
    while (panels.children.length > drawing.panels.length) panels.lastChild.remove();
    drawing.panels.forEach(({ svg }, n) => {
      const slot = panels.children[n] || panels.appendChild(make("div", "mw-slot"));
      patch(slot, renamed(svg, own));
    });
    const mesh = panels.firstChild;
    if (mesh && !mesh.hasAttribute("tabindex")) {
      mesh.tabIndex = 0;
      mesh.setAttribute("aria-label", "devices of the mesh; arrow keys choose one");
      mesh.setAttribute("role", "application");
      mesh.addEventListener("keydown", walk);
    }
    root.dataset.number = drawing.number;
    hovered = -1;
    mark();
  }
  panels.addEventListener("pointermove", event => { const device = under(event); if (device !== hovered) { hovered = device; mark(); } });
  panels.addEventListener("pointerleave", () => { hovered = -1; mark(); });
  panels.addEventListener("click", event => { const device = under(event); choose(device === model.get("device") ? -1 : device); });
  model.on("change:drawing", draw);
  model.on("change:device", mark);
  model.on("change:values", mark);
  draw();
}
export default { render };
