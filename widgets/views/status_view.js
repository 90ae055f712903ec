// The fixed-height sentence (errors land there too), offers to press, and everything that is folded away.
const heading = text => { const node = make("div", "mw-head"); node.textContent = text; return node; };

function copier(read) {
  const button = make("button", "mw-button", { type: "button" });
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try { await navigator.clipboard.writeText(read()); button.textContent = "Copied"; }
    catch { button.textContent = "Select the text and copy it"; }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  return button;
}

function render({ model, el }) {
  const root = make("div", "mw mw-bottom", { "data-lm-suppress-shortcuts": "true" });
  root.addEventListener("keydown", event => event.stopPropagation());
  const line = make("div", "mw-sentence", { tabindex: 0, "aria-label": "what happens and why" });
  const says = make("div", "mw-says", { role: "status", "aria-live": "polite" });
  const offers = make("div", "mw-offers");
  line.append(says, offers);
  const box = make("div", "mw-box"), more = make("button", "mw-button mw-more", { type: "button" });
  more.textContent = "more";
  more.title = "the sentence goes on: read all of it in the details";
  more.hidden = true;
  box.append(line, more);
  const fold = make("details", "mw-details");
  const summary = make("summary");
  summary.textContent = "Details: table, code, state";
  const whole = make("div", "mw-whole", { tabindex: -1 }), wholeHead = heading("The whole sentence");
  const error = make("pre", "mw-error");
  const table = make("div", "mw-table");
  const code = make("pre", "mw-code");
  const state = make("textarea", "mw-state", { rows: 3, spellcheck: false, "aria-label": "state as JSON" });
  const apply = make("button", "mw-button", { type: "button" });
  apply.textContent = "Use this state";
  const foot = make("div", "mw-foot"), saving = make("div", "mw-save", { role: "group", "aria-label": "save the picture" });
  const saveSays = make("div", "mw-save-says", { role: "status" });
  saving.append("Save:", ...["PNG", "SVG"].map(kind => {
    const button = make("button", "mw-button", { type: "button", "aria-label": `Save the picture as ${kind}` });
    button.textContent = kind;
    button.addEventListener("click", () => wish(kind.toLowerCase()));
    return button;
  }));
  const errorHead = heading("Full text of the error");
  const codeHead = heading("The call that gives this picture"), stateHead = heading("State");
  codeHead.append(copier(() => code.textContent));
  stateHead.append(apply, copier(() => state.value));
  fold.append(summary, wholeHead, whole, errorHead, error, codeHead, code, stateHead, state, heading("As a table"), table);
  foot.append(saving, fold, saveSays);
  root.append(box, foot);
  el.append(root);

  let number = 0;
  function ask(what) { model.set("asked", { number: ++number, ...what }); model.save_changes(); }
  apply.addEventListener("click", () => ask({ state: state.value }));
  more.addEventListener("click", () => { fold.open = true; cue(); whole.focus(); });
  line.addEventListener("scroll", cue);
  fold.addEventListener("toggle", () => { cue(); model.set("unfolded", fold.open); model.save_changes(); });

  function cue() {                        // what is cut at the box's lower edge fades there and can be asked for
    const long = line.scrollHeight > line.clientHeight + 2;
    more.hidden = !long;
    box.classList.toggle("mw-cut", long && line.scrollTop + line.clientHeight < line.scrollHeight - 2);
    wholeHead.hidden = whole.hidden = !(long && fold.open);
    const words = whole.hidden ? "" : says.innerHTML;
    if (whole.innerHTML !== words) whole.innerHTML = words;
  }
  function draw() {
    const shown = model.get("shown");
    root.dataset.kind = shown.kind;
    if (says.innerHTML !== shown.sentence) { says.innerHTML = shown.sentence; line.scrollTop = 0; }
    offers.replaceChildren(...shown.offers.map((label, place) => {
      const button = make("button", "mw-button", { type: "button", "data-offer": place });
      button.textContent = label;
      button.addEventListener("click", () => ask({ offer: place }));
      return button;
    }));
    errorHead.hidden = error.hidden = !shown.error;
    error.textContent = shown.error;
    code.textContent = shown.code;
    if (document.activeElement !== state) state.value = shown.state;
    if (shown.table) table.innerHTML = shown.table;
    cue();
  }
  // of several views of one explorer, the one that was asked saves the file
  let wished = null, patience = 0;
  const saySave = words => { saveSays.textContent = words; };
  function wish(kind) {
    wished = liveNodes(root);
    clearTimeout(patience);
    patience = setTimeout(() => saySave("The kernel has not answered; if it was stopped, run this cell again."), 4000);
    ask({ save: kind, live: sizesOf(wished) });
  }
  async function save() {
    const nodes = wished, file = model.get("saved");
    wished = null;
    if (!nodes || !file.text) return;
    clearTimeout(patience);
    try { await saveFile(file, root, nodes); saySave(""); }
    catch (error) { saySave(`Not saved: ${error.message}`); }
  }
  model.on("change:shown", draw);
  model.on("change:saved", save);
  draw();
  new ResizeObserver(cue).observe(line);
}
export default { render };
