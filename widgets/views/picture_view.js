// Shows what Python drew.
function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "mw mw-live mw-picture";
  root.setAttribute("role", "figure");
  el.append(root);
  const draw = () => { root.setAttribute("aria-label", model.get("label")); root.innerHTML = model.get("html"); };
  model.on("change:html", draw);
  model.on("change:label", draw);
  draw();
}
export default { render };
