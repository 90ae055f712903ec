// Shows bars that Python drew; reads the one under the pointer or the keys, opens loops, and stretches the time axis.
const MOST = 64, LEGIBLE = 40, TICK = 90;    // times; pixels that words need, and that a tick's value needs

// Round values of time within a view, at least two and at most six, as [share of the whole, words].
function ticks(span, from, to, width) {
  const most = Math.max(2, Math.min(6, Math.floor(width / TICK))), least = (to - from) / most;
  const power = 10 ** Math.floor(Math.log10(least)), step = [1, 2, 5, 10].find(n => n * power >= least * 0.999) * power;
  const [unit, name] = [[1, "s"], [1e-3, "ms"], [1e-6, "µs"], [1e-9, "ns"]].find(([size]) => span >= size) || [1e-9, "ns"];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9)), found = [];
  for (let n = Math.ceil(from / step - 1e-9); n * step <= to * (1 + 1e-9); n++)
    found.push([n * step / span, `${(n * step / unit).toFixed(digits)} ${name}`]);
  return found;
}

function render({ model, el }) {
  const own = `t${Math.random().toString(36).slice(2)}`;
  const root = make("div", "mw mw-live mw-time-view", { "data-lm-suppress-shortcuts": "true" });
  const both = make("div", "mw-timeline", { tabindex: 0, role: "application", "aria-label": "timeline; arrow keys walk the bars" });
  const side = make("div", "mw-time-side"), scroll = make("div", "mw-time-scroll"), wide = make("div", "mw-time-wide");
  const tools = make("div", "mw-time-tools"), says = make("div", "mw-time-says", { role: "status", "aria-live": "polite" });
  const button = (words, label, act) => {
    const node = make("button", "mw-button", { type: "button", "aria-label": label, title: label });
    node.textContent = words;
    node.addEventListener("click", act);
    tools.append(node);
  };
  let zoom = 1, reads = -1, number = model.get("opened").number, subject = "", asked = 0;
  button("−", "zoom out", () => stretch(zoom / 2));
  const factor = make("span", "mw-time-factor", { title: "how much the time axis is stretched" });
  tools.append(factor);
  button("+", "zoom in", () => stretch(zoom * 2));
  button("fit", "fit the whole time into the view", () => stretch(1));
  scroll.append(wide);
  both.append(side, scroll);
  tools.append(says);
  root.append(both, tools);
  el.append(root);

  const bars = () => [...wide.querySelectorAll(".mw-bar")];
  const bar = n => wide.querySelector(`.mw-bar[data-bar="${n}"]`);
  function read(n) {
    bar(reads)?.classList.remove("mw-read");
    reads = bar(n) ? n : -1;
    bar(reads)?.classList.add("mw-read");
    const drawing = model.get("drawing");
    says.innerHTML = reads >= 0 ? drawing.says[reads] : "";
    if (reads < 0) says.textContent = drawing.hint;
    root.dataset.reads = reads;
  }
  function stretch(to, around) {          // what stood under `around` (a share of the view) stays there
    const share = around ?? 0.5, wanted = Math.min(Math.max(to, 1), MOST);
    const place = (scroll.scrollLeft + share * scroll.clientWidth) / wide.clientWidth;
    zoom = wanted;
    wide.style.width = `${100 * zoom}%`;
    scroll.scrollLeft = place * wide.clientWidth - share * scroll.clientWidth;
    root.dataset.zoom = zoom;
    factor.textContent = `${zoom}×`;
    legible();
  }
  const share = (node, name) => Number(node.getAttribute(name).slice(0, -1)) / 100 * wide.clientWidth;
  function legible() {                    // words stand where their bar is in view; cut to a letter or two they only disturb
    if (!scroll.clientWidth) return;      // not shown now
    const low = scroll.scrollLeft, high = low + scroll.clientWidth;
    for (const words of wide.querySelectorAll(".mw-bar > svg")) {
      const left = share(words, "x"), begin = Math.max(left, low), end = Math.min(left + share(words, "width"), high);
      words.style.visibility = end - begin < LEGIBLE ? "hidden" : "";
      words.firstElementChild.setAttribute("x", begin - left + 4);
    }
    rule(low / wide.clientWidth, high / wide.clientWidth);
  }
  function rule(from, to) {               // the same lines and values as in the still picture, of what is in view
    const axis = wide.querySelector(".mw-ticks"), span = Number(wide.firstElementChild?.dataset.span);
    if (!axis) return;
    const foot = Number(axis.dataset.foot), drawn = ticks(span, from * span, to * span, scroll.clientWidth);
    axis.innerHTML = drawn.map(([at, words]) => {
      const x = `${(100 * at).toFixed(4)}%`, near = (at - from) / (to - from);
      const anchor = near < 0.03 ? "start" : near > 0.97 ? "end" : "middle";
      return `<line x1="${x}" x2="${x}" y1="0" y2="${foot}" stroke="#808080" stroke-opacity="0.3"/>` +
        `<text x="${x}" y="${foot + 13}" font-size="11" text-anchor="${anchor}">${words}</text>`;
    }).join("");
  }
  function open(node) {
    if (!node?.dataset.zoom) return;
    model.set("opened", { number: ++number, value: node.dataset.zoom });
    model.save_changes();
  }
  function follow(node) {                 // bring the bar that is read into view, sideways only
    const at = node.getBoundingClientRect(), view = scroll.getBoundingClientRect();
    if (at.left < view.left) scroll.scrollLeft -= view.left - at.left + 20;
    else if (at.right > view.right) scroll.scrollLeft += Math.min(at.right - view.right + 20, at.left - view.left);
  }
  function walk(key) {
    const all = bars(), now = bar(reads), line = node => `${node.dataset.panel} ${node.dataset.row}`;
    if (!now) return all[0];
    const lines = [...new Set(all.map(line))].sort((a, b) => top(all, line, a) - top(all, line, b));
    const step = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (step) {
      const same = all.filter(node => line(node) === line(now));
      return same[same.indexOf(now) + step];
    }
    const to = lines[lines.indexOf(line(now)) + (key === "ArrowDown" ? 1 : -1)];
    const far = node => Math.abs(Number(node.dataset.start) - Number(now.dataset.start));
    return all.filter(node => line(node) === to).sort((a, b) => far(a) - far(b))[0];
  }
  const top = (all, line, name) => all.find(node => line(node) === name).getBoundingClientRect().top;

  wide.addEventListener("pointermove", event => {
    const node = event.target.closest(".mw-bar");
    if (node && Number(node.dataset.bar) !== reads) read(Number(node.dataset.bar));
  });
  wide.addEventListener("click", event => open(event.target.closest(".mw-bar")));
  scroll.addEventListener("wheel", event => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const view = scroll.getBoundingClientRect();
    stretch(event.deltaY < 0 ? zoom * 2 : zoom / 2, (event.clientX - view.left) / view.width);
  }, { passive: false });
  both.addEventListener("keydown", event => {
    if (event.key === "Enter") open(bar(reads));
    else if (event.key === "+" || event.key === "=") stretch(zoom * 2);
    else if (event.key === "-") stretch(zoom / 2);
    else if (event.key === "0") stretch(1);
    else if (event.key === "Escape") read(-1);
    else if (event.key.startsWith("Arrow")) {
      const node = walk(event.key);
      if (node) { read(Number(node.dataset.bar)); follow(node); }
    } else return;
    event.preventDefault();
  });
  root.addEventListener("keydown", event => event.stopPropagation());
  function draw() {
    const drawing = model.get("drawing");
    side.innerHTML = drawing.labels;
    wide.innerHTML = renamed(drawing.bars, own);
    root.dataset.drawn = Number(root.dataset.drawn || 0) + 1;
    if (drawing.subject !== subject) stretch(1);  // another record, or another window: what was looked at is gone
    subject = drawing.subject;
    legible();
    read(-1);
  }
  const soon = () => { cancelAnimationFrame(asked); asked = requestAnimationFrame(legible); };
  scroll.addEventListener("scroll", soon);
  const sizes = new ResizeObserver(soon);
  sizes.observe(scroll);
  sizes.observe(wide);
  model.on("change:drawing", draw);
  stretch(1);
  draw();
}
export default { render };
