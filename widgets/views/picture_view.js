// Shows what Python drew.
function render({ model, el }) {
  const own = `p${Math.random().toString(36).slice(2)}`;
  const root = document.createElement("div");
  root.className = "mw mw-live mw-picture";
  root.setAttribute("role", "figure");
  el.append(root);
  const draw = () => { root.setAttribute("aria-label", model.get("label")); patch(root, renamed(model.get("html"), own)); };
  model.on("change:html", draw);
  model.on("change:label", draw);
  draw();
}
export default { render };
