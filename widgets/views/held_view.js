// Shows the values that Python laid out, and lets a reader choose the device: by the menu, or by clicking its card.

function render({ model, el }) {
  const root = make("div", "mw mw-live mw-held", { "data-lm-suppress-shortcuts": "true" });
  const head = make("div", "mw-held-head"), about = make("span", "mw-about", { "aria-live": "polite" });
  const label = make("label", "mw-control"), menu = make("select", "", { "aria-label": "device whose values are shown" });
  const body = make("div", "mw-held-body", { tabindex: 0, "aria-label": "values before and after the step" });
  label.append("Device", menu);
  head.append(label, about);
  root.append(head, body);
  el.append(root);

  function choose(device) {
    model.set("device", device);
    model.save_changes();
  }
  function draw() {
    const { html, devices, about: words } = model.get("shown");
    about.textContent = words;
    label.hidden = !devices.length;
    if (menu.options.length !== devices.length || devices.some((name, n) => menu.options[n].text !== name))
      menu.replaceChildren(...devices.map((name, n) => new Option(name, n)));
    menu.value = model.get("device");
    const left = body.scrollLeft, top = body.scrollTop;
    body.innerHTML = html;
    body.scrollLeft = left; body.scrollTop = top;
    root.classList.toggle("mw-empty", !devices.length);
  }
  menu.addEventListener("change", () => choose(Number(menu.value)));
  body.addEventListener("click", event => {
    const card = event.target.closest("[data-card]");
    if (card) choose(Number(card.dataset.card));
  });
  root.addEventListener("keydown", event => event.stopPropagation());
  model.on("change:shown", draw);
  model.on("change:device", () => { menu.value = model.get("device"); });
  draw();
}
export default { render };
