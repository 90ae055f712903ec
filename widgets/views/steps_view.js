// Shows the steps that Python drew, and lets a reader walk through them; the choice goes to the kernel as `step`.

const OWN = ["id", "aria-selected"];  // of a row: set here

function render({ model, el }) {
  const uid = `mw-steps-${Math.random().toString(36).slice(2)}`;  // not a count: each model loads this file anew
  const root = make("div", "mw mw-live mw-program-view", { "data-lm-suppress-shortcuts": "true" });
  const list = make("div", "mw-steps", { tabindex: 0, role: "listbox", "aria-label": "steps of the program, arrow keys walk" });
  const totals = make("div", "mw-totals");
  const walk = make("div", "mw-walk"), where = make("span", "mw-where", { "aria-live": "polite" });
  const back = button("◀ Back", () => choose(model.get("step") - 1));
  const forward = button("Forward ▶", () => choose(model.get("step") + 1));
  const play = button("Play", () => (timer ? stop() : start()));
  const fold = make("details", "mw-details"), summary = make("summary"), source = make("pre", "mw-code");
  const both = make("div", "mw-program");
  let timer = 0, drawn = false, inSight = "";
  walk.append(back, forward, play, where);
  summary.textContent = "The same program in plain JAX";
  fold.append(summary, source);
  both.append(list, totals);
  root.append(walk, both, fold);
  el.append(root);

  function choose(step) {
    const count = model.get("drawing").count;
    if (step < 0 || step >= count || step === model.get("step")) return;
    model.set("step", step);
    model.save_changes();
    mark();
  }
  function start() {
    if (model.get("step") >= model.get("drawing").count - 1) choose(0);
    timer = setInterval(() => {
      if (!root.isConnected || model.get("step") >= model.get("drawing").count - 1) stop();
      else choose(model.get("step") + 1);
    }, 900);
    play.textContent = "Pause";
  }
  function stop() { clearInterval(timer); timer = 0; play.textContent = "Play"; }
  function mark() {
    const step = model.get("step"), count = model.get("drawing").count;
    for (const row of list.querySelectorAll("[data-step]")) {
      const chosen = Number(row.dataset.step) === step;
      row.setAttribute("aria-selected", chosen);
      if (!chosen) continue;
      list.setAttribute("aria-activedescendant", row.id);
      if (!root.isConnected || inSight === `${step} of ${count}`) continue;  // asking where it stands lays the whole page out
      inSight = `${step} of ${count}`;
      // only the list scrolls: the page must not move under a reader's hand
      const top = row.offsetTop - list.offsetTop, bottom = top + row.offsetHeight;
      if (top < list.scrollTop) list.scrollTop = top;
      else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
    }
    where.textContent = count ? `step ${step + 1} of ${count}` : "no steps";
    const walked = [back, forward].find(each => each === document.activeElement);
    back.disabled = step <= 0;
    forward.disabled = step >= count - 1;
    // at an end the pressed button would drop the focus, and the next keys would go to the notebook
    if (walked?.disabled) list.focus({ preventScroll: true });
    play.disabled = count < 2;
    root.dataset.chosen = step;
  }
  function draw() {
    const drawing = model.get("drawing");
    patch(list, drawing.steps, OWN);
    patch(totals, drawing.totals);
    for (const row of list.querySelectorAll("[data-step]")) {
      row.id = `${uid}-${row.dataset.step}`;
    }
    mark();
  }
  function light() {           // steps that have run keep a mark; right after the run they light up once, in order
    const ran = model.get("ran"), fresh = ran && drawn && !root.classList.contains("mw-ran");
    root.classList.toggle("mw-ran", ran);
    if (!fresh) return;
    root.classList.add("mw-light");
    setTimeout(() => root.classList.remove("mw-light"), 160 * model.get("drawing").count + 900);
  }
  list.addEventListener("click", event => {
    const row = event.target.closest("[data-step]");
    if (row) { stop(); choose(Number(row.dataset.step)); }
  });
  list.addEventListener("keydown", event => {
    const step = model.get("step"), last = model.get("drawing").count - 1;
    const to = { ArrowDown: step + 1, ArrowRight: step + 1, ArrowUp: step - 1, ArrowLeft: step - 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    stop();
    choose(to);
  });
  root.addEventListener("keydown", event => event.stopPropagation());
  fold.addEventListener("toggle", () => { model.set("unfolded", fold.open); model.save_changes(); });
  const tell = () => { source.textContent = model.get("source"); };
  model.on("change:drawing", draw);
  model.on("change:step", mark);
  model.on("change:ran", light);
  model.on("change:source", tell);
  draw(); light(); tell();
  drawn = true;
  return stop;
}
export default { render };
