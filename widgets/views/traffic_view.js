// Draws the state after any hop on the picture that Python made, and lets messages travel while it plays.
const shape = (tag, attributes, text) => {
  const node = document.createElementNS(NS, tag);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
};
// The library's one way to write bytes: three digits and the prefix that fits.
function bytes(value) {
  const place = value >= 1 ? Math.min(Math.floor(Math.log2(value) / 10), 6) : 0, size = value / 2 ** (10 * place);
  const places = size ? Math.max(0, 2 - Math.floor(Math.log10(size))) : 0, exact = size * 10 ** places;
  const even = exact % 1 === 0.5 ? 2 * Math.round(exact / 2) / 10 ** places : size;  // a tie goes to the even digit, as in Python
  const digits = even.toFixed(places);
  const short = digits.includes(".") ? digits.replace(/\.?0+$/, "") : Number(digits).toLocaleString("en-US");
  return `${short} ${["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][place]}`;
}
const along = ([a, b, c], share) => [0, 1].map(n => (1 - share) ** 2 * a[n] + 2 * share * (1 - share) * b[n] + share ** 2 * c[n]);

function render({ model, el }) {
  const root = make("div", "mw mw-live mw-hops-view", { "data-lm-suppress-shortcuts": "true" });
  const bar = make("div", "mw-hop-bar"), where = make("span", "mw-hop-where");
  const back = button("◀ Back", () => go(model.get("hop") - 1));
  const play = button("Play", () => (playing ? pause() : start()));
  const forward = button("Forward ▶", () => go(model.get("hop") + 1));
  const slider = make("input", "", { type: "range", min: 0, step: 1, "aria-label": "step of the collective" });
  const stage = make("div", "mw-hop-stage", { tabindex: 0, role: "application", "aria-label": "devices and links; arrow keys step, space plays" });
  const legend = make("div", "mw-hop-legend");
  legend.innerHTML = '<span><i class="mw-legend-move"></i>a message, by its block (+: to be added)</span>' +
    '<span><i class="mw-legend-has"></i>how much of a block a device has</span>' +
    '<span><i class="mw-legend-link"></i>bytes a link has carried <span class="mw-origin">modelled</span></span>';
  bar.append(back, play, forward, slider, where);
  root.append(bar, stage, legend);
  el.append(root);
  let drawing, svg, links, labels, devices, layer, sums = [], playing = false, share = null, last = 0, seen = true, frame = 0, most = 1, mine = -1;
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  // ---- what stands in the picture
  function build() {
    drawing = model.get("drawing");
    stage.innerHTML = drawing.svg;
    svg = stage.querySelector("svg");
    if (!svg) return;
    for (const side of ["width", "height"]) svg.removeAttribute(side);
    const { width, height } = svg.viewBox.baseVal;
    Object.assign(svg.style, { width: `${width * 1.5}px`, height: `${height * 1.5}px` });
    links = [...svg.querySelectorAll("[data-link]")];
    labels = [...svg.querySelectorAll("[data-carried]")];
    devices = [...svg.querySelectorAll("[data-device]")];
    layer = svg.appendChild(shape("g", {}));
    slider.max = drawing.steps;
    most = Math.max(...drawing.counts.flat(), 1);
    sums = [links.map(() => 0)];
    for (const moves of drawing.moves) {
      const next = [...sums[sums.length - 1]];
      for (const [link, pieces] of moves) next[link] += pieces;
      sums.push(next);
    }
    share = null;
    draw();
  }
  function draw() {
    if (!svg) return;
    const hop = Math.min(model.get("hop"), drawing.steps), travelling = share !== null;
    state(travelling ? hop - 1 : hop);
    tokens(hop, travelling ? share : null);
    slider.value = hop;
    where.textContent = `step ${hop} of ${drawing.steps}`;
    const stepped = [back, forward].find(each => each === document.activeElement);
    back.disabled = hop <= 0;
    forward.disabled = hop >= drawing.steps;
    // at an end the pressed button would drop the focus, and the next keys would go to the notebook
    if (stepped?.disabled) stage.focus({ preventScroll: true });
    play.disabled = !drawing.steps;
    svg.dataset.hop = root.dataset.hop = hop;
  }
  function state(hop) {
    const { piece_bytes, busiest } = model.get("scale"), sent = sums[hop];
    links.forEach((link, n) => {
      const carried = sent[n] * piece_bytes;
      link.setAttribute("stroke-width", drawing.thin + (drawing.thick - drawing.thin) * carried / (busiest || 1));
      link.setAttribute("opacity", carried ? 1 : 0.4);
      link.dataset.bytes = carried;
      link.firstChild.textContent = link.firstChild.textContent.replace(/:.*/, `: ${bytes(carried)} so far`);
    });
    labels.forEach((label, n) => { label.textContent = sent[n] ? bytes(sent[n] * piece_bytes) : ""; });
    if (drawing.cells) devices.forEach((device, n) => fill(device, drawing.held[hop][n]));
    else devices.forEach((device, n) => gauge(device, drawing.counts[hop][n]));
    root.dataset.state = hop;
  }
  function fill(device, letters) {
    const group = device.querySelector("[data-held]");
    if (group.dataset.held === letters) return;
    group.dataset.held = letters;
    group.querySelectorAll(".mw-fill").forEach((bar, block) => {
      const waits = letters[block] === "-", high = waits ? 14 : 14 * parseInt(letters[block], 36) / 35;
      bar.setAttribute("height", high);
      bar.setAttribute("y", 13 - high);
      bar.setAttribute("fill", waits ? "none" : "#56B4E9");
      bar.setAttribute("stroke", waits ? "#56B4E9" : "none");
    });
  }
  function gauge(device, count) {
    const bar = device.querySelector(".mw-gauge"), frame = device.querySelector(".mw-node");
    const room = Number(frame.getAttribute("height")), high = room * count / most;
    bar.setAttribute("height", high);
    bar.setAttribute("y", room / 2 - high);
    device.dataset.count = count;
  }

  // ---- what moves
  function tokens(hop, at) {
    const moves = hop ? drawing.moves[hop - 1] : [];
    if (layer.dataset.hop !== String(hop) || layer.childNodes.length !== moves.length) {
      layer.dataset.hop = hop;
      layer.replaceChildren(...moves.map(token));
    }
    const place = at === null ? drawing.rest : 0.08 + 0.84 * at;
    moves.forEach(([link], n) => {
      const [x, y] = along(drawing.links[link], place);
      layer.childNodes[n].setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    });
  }
  function token([link, , label, combine]) {
    const words = combine === "add" ? `+${label}` : label, wide = Math.max(16, 5.2 * words.length + 7);
    const group = shape("g", { class: "mw-token", "data-token": link, "data-label": words });
    const look = { fill: "#F0E442", stroke: "#333", "stroke-width": 0.8 };
    if (!drawing.cells) { group.append(shape("circle", { r: 3.5, ...look })); return group; }
    group.append(shape("rect", { x: -wide / 2, y: -8, width: wide, height: 16, rx: 8, ...look }));
    group.append(shape("text", { x: 0, y: 3, "font-size": 8.5, "text-anchor": "middle" }, words));
    return group;
  }

  // ---- playing
  function choose(hop) {
    mine = hop;
    if (hop !== model.get("hop")) { model.set("hop", hop); model.save_changes(); }
  }
  function go(hop) {
    pause();
    share = null;
    choose(Math.min(Math.max(hop, 0), drawing.steps));
    draw();
  }
  function start() {
    if (!drawing.steps) return;
    playing = true;
    play.textContent = "Pause";
    root.dataset.playing = "true";
    if (share === null) next();
    last = performance.now();
    frame = requestAnimationFrame(tick);
  }
  function pause() {
    playing = false;
    cancelAnimationFrame(frame);
    play.textContent = "Play";
    root.dataset.playing = "false";
  }
  function next() {
    const hop = model.get("hop");
    share = 0;
    choose(hop >= drawing.steps ? 1 : hop + 1);
    draw();
  }
  function tick(now) {
    if (!playing) return;
    if (!root.isConnected) { pause(); return; }
    const long = Math.min(Math.max(14000 / drawing.steps, 260), 1100), passed = Math.min(now - last, 100);
    last = now;
    if (seen) advance(passed / long);
    if (playing) frame = requestAnimationFrame(tick);
  }
  function advance(by) {
    share = Math.min(share + by, 1);
    if (share >= 1) {
      share = null;
      if (model.get("hop") >= drawing.steps) { pause(); draw(); } else next();
    } else if (!still.matches) tokens(model.get("hop"), share);
  }
  slider.addEventListener("input", () => go(Number(slider.value)));
  stage.addEventListener("keydown", event => {
    const hop = model.get("hop");
    const to = { ArrowRight: hop + 1, ArrowUp: hop + 1, ArrowLeft: hop - 1, ArrowDown: hop - 1, Home: 0, End: drawing.steps }[event.key];
    if (event.key === " ") { event.preventDefault(); playing ? pause() : start(); }
    if (to === undefined) return;
    event.preventDefault();
    go(to);
  });
  root.addEventListener("keydown", event => event.stopPropagation());
  const watch = new IntersectionObserver(entries => { seen = entries[entries.length - 1].isIntersecting; });
  watch.observe(stage);
  const moved = () => { if (model.get("hop") !== mine) { pause(); share = null; draw(); } };  // the kernel chose it
  model.on("change:drawing", () => { pause(); build(); });
  model.on("change:scale", () => { if (svg) draw(); });
  model.on("change:hop", moved);
  build();
  pause();
  return () => { pause(); watch.disconnect(); };
}
export default { render };
