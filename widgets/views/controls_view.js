// A row of native controls from a list of specs. Elements are kept and updated in place, so focus, the cursor and
// a drag survive each answer of the kernel; an element is only written to when the kernel has seen its last edit.

const MOST_WORDS = 22;  // characters of a menu's words that are shown; all of them in the open menu

// While sliders move, a picture that grows shorter leaves its room as it is, so that what is below it stays in place.
function holdStage(root, hold) {
  const stage = root.closest(".mw-explorer")?.querySelector(".mw-stage");
  if (!stage) return;
  if (hold && stage.dataset.width === String(stage.clientWidth)) return;
  stage.dataset.width = hold ? stage.clientWidth : "";
  stage.style.minHeight = hold ? `${stage.getBoundingClientRect().height}px` : "";
}

// A button that a run switches off would drop the focus, and the next keys would go to the notebook: till then, the row
// around it has it, so that Tab goes on from there.
function lendFocus(button) {
  const row = button.closest(".mw-group") || button.parentElement;
  row.tabIndex = -1;
  row.addEventListener("blur", () => row.removeAttribute("tabindex"), { once: true });
  row.focus({ preventScroll: true });
  return row;
}

const KINDS = {
  int(spec, edit) {
    const slider = make("input", "", { type: "range", step: 1, "aria-label": `${spec.label}, powers of two` });
    const box = make("input", "mw-number", { type: "number", step: 1, "aria-label": spec.label });
    const value = () => (Number(slider.value) < 0 ? 0 : 2 ** Number(slider.value));
    const place = (number, round) => (number < 1 ? -1 : round(Math.log2(number)));  // below 1 there is 0
    let given = null, typing = false;
    slider.addEventListener("input", () => { box.value = value(); edit(value(), false); });
    slider.addEventListener("change", () => edit(value(), true));
    box.addEventListener("input", () => { typing = true; });
    box.addEventListener("change", () => { typing = false; edit(box.value === "" ? null : Number(box.value), true); });
    return {
      nodes: [slider, box],
      set(now) {
        slider.min = place(now.low, Math.ceil);
        slider.max = place(now.high, Math.floor);
        slider.value = place(now.value, Math.round);
        slider.setAttribute("aria-valuetext", now.value);
        box.min = now.low; box.max = now.high;
        if (typing && now.value === given) return;  // news of other controls must not wipe out what is being typed
        typing = false;
        given = box.value = now.value;
      },
    };
  },
  choice(spec, edit) {
    const select = make("select", "", { "aria-label": spec.label });
    let drawn = "", longest = 2;
    select.addEventListener("change", () => edit(select.value, true));
    return {
      nodes: [select],
      set(now) {
        const wanted = JSON.stringify([now.options, now.off]);
        if (wanted !== drawn) {
          select.replaceChildren(...now.options.map(([value, words]) => new Option(words, value)));
          for (const option of select.options) option.disabled = now.off.includes(option.value);
          drawn = wanted;
          // as wide as words need, within reason, and never narrower again: what stands after it stays where it is
          longest = Math.max(longest, Math.min(MOST_WORDS, Math.max(...now.options.map(([, words]) => words.length))));
          select.style.width = `calc(${longest}ch + 26px)`;
        }
        select.value = now.value;
        select.title = select.selectedOptions[0]?.text || "";
      },
    };
  },
  text(spec, edit) {
    const box = make("input", spec.wide ? "mw-text mw-wide" : "mw-text",
      { type: "text", spellcheck: false, autocomplete: "off", "aria-label": spec.label });
    let given = null, typing = false;
    box.addEventListener("input", () => { typing = true; });
    box.addEventListener("change", () => { typing = false; edit(box.value, true); });
    return {
      nodes: [box],
      set(now) {
        if (typing && now.value === given) return;
        typing = false;
        given = now.value;
        if (box.value !== given) box.value = given;
      },
    };
  },
  button(spec, edit) {
    const button = make("button", "mw-button", { type: "button" });
    button.addEventListener("click", () => edit(true, true));
    let lent = null;
    return {
      nodes: [button],
      set(now) {
        const focused = document.activeElement === button;
        button.textContent = now.label;
        button.disabled = !now.enabled;
        if (focused && button.disabled) lent = lendFocus(button);
        if (lent && now.enabled) {
          if (document.activeElement === lent) button.focus({ preventScroll: true });
          lent = null;
        }
      },
    };
  },
};

function render({ model, el }) {
  // JupyterLab's shortcuts must not take arrows and Enter from the controls
  const root = make("div", "mw mw-live mw-top", { "data-lm-suppress-shortcuts": "true" });
  root.addEventListener("keydown", event => event.stopPropagation());
  root.addEventListener("input", event => holdStage(root, event.target.type === "range"), true);
  root.addEventListener("click", event => { if (event.target.closest("button")) holdStage(root, false); }, true);
  const question = make("div", "mw-question", { role: "heading", "aria-level": 3 });
  const row = make("div", "mw-controls");
  const run = make("div", "mw-run");
  const bar = make("progress", "", { "aria-label": "progress of the run" });
  const words = make("span", "mw-run-text");
  run.append(bar, words);
  root.append(question, row, run);
  el.append(root);

  const kept = new Map();          // name → { kind, holder, set }
  const unseen = new Map();        // name → { value, number } that the kernel has not acknowledged
  let number = model.get("edits").number || 0, shape = "", waiting = 0;

  function edit(name, value, released) {
    unseen.set(name, { value, number: ++number });
    root.dataset.unseen = unseen.size;
    const values = Object.fromEntries([...unseen].map(([key, sent]) => [key, sent.value]));
    model.set("edits", { number, released, values });
    model.save_changes();
    clearTimeout(waiting);
    waiting = setTimeout(() => { run.hidden = false; words.textContent = "The kernel has not answered yet; if it was stopped, run this cell again."; }, 4000);
  }
  function holder(spec) {
    const old = kept.get(spec.name);
    if (old && old.kind === spec.kind) return old;
    const made = KINDS[spec.kind](spec, (value, released) => edit(spec.name, value, released));
    const node = make("label", `mw-control mw-kind-${spec.kind}`, { "data-control": spec.name });
    if (spec.kind !== "button") {
      const name = make("span", "mw-label");
      name.textContent = spec.label;
      node.append(name);
    }
    if (spec.hint) node.title = spec.hint;
    node.append(...made.nodes);
    kept.set(spec.name, { kind: spec.kind, holder: node, set: made.set });
    return kept.get(spec.name);
  }
  function arrange(items) {
    const focused = root.contains(document.activeElement) ? document.activeElement : null;
    const groups = new Map();
    for (const spec of items) {
      if (!groups.has(spec.group)) {
        const group = make("div", "mw-group", { role: "group", "aria-label": spec.group || "controls" });
        if (spec.group) { const head = make("span", "mw-legend"); head.textContent = spec.group; group.append(head); }
        groups.set(spec.group, group);
      }
      groups.get(spec.group).append(holder(spec).holder);
    }
    row.replaceChildren(...groups.values());
    for (const name of [...kept.keys()]) if (!items.some(spec => spec.name === name)) kept.delete(name);
    if (focused && root.contains(focused)) focused.focus({ preventScroll: true });
  }
  function drawRow() {
    const { items, seen } = model.get("row");
    for (const [name, sent] of [...unseen]) if (sent.number <= seen) unseen.delete(name);
    const wanted = JSON.stringify(items.map(spec => [spec.name, spec.kind, spec.group, spec.label]));
    if (wanted !== shape) { arrange(items); shape = wanted; }
    for (const spec of items) if (!unseen.has(spec.name)) kept.get(spec.name).set(spec);
    root.dataset.seen = seen;
    root.dataset.unseen = unseen.size;
    if (!unseen.size) { clearTimeout(waiting); drawRun(); }
  }
  function drawRun() {
    const { busy, done, total, text } = model.get("progress");
    run.hidden = !busy && !text && !kept.has("stop");  // what can be run keeps the room for its line
    run.dataset.busy = busy;
    bar.max = total; bar.value = done; bar.hidden = !busy;
    words.textContent = text;
  }
  const drawQuestion = () => { question.textContent = model.get("question"); };
  model.on("change:row", drawRow);
  model.on("change:progress", drawRun);
  model.on("change:question", drawQuestion);
  drawQuestion(); drawRow(); drawRun();
}
export default { render };
