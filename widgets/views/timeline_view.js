// Shows bars that Python drew; reads the one under the pointer or the keys, opens loops, and stretches the time axis.
const make = (tag, cls, attributes = {}) => {
  const node = document.createElement(tag);
  if (cls) node.className = cls;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
};
// A page takes the first pattern of a name, and in a hidden tab that one paints nothing: each view has names of its own.
const renamed = (svg, own) => svg.replace(/(id="|url\(#)mw/g, `$1${own}-mw`);
const MOST = 64;

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
  let zoom = 1, reads = -1, number = model.get("opened").number;
  button("−", "zoom out", () => stretch(zoom / 2));
  button("+", "zoom in", () => stretch(zoom * 2));
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
    legible();
  }
  function legible() {                    // words that would be cut to a letter or two only disturb
    for (const words of wide.querySelectorAll(".mw-bar > svg"))
      words.style.visibility = Number(words.getAttribute("width").slice(0, -1)) / 100 * wide.clientWidth < 40 ? "hidden" : "";
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
    legible();
    read(-1);
  }
  new ResizeObserver(legible).observe(scroll);
  model.on("change:drawing", draw);
  stretch(1);
  draw();
}
export default { render };
