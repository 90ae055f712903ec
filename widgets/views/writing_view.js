// Shows what Python drew of a conversation; its end stays in sight, unless the reader has scrolled away from it.
function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "mw mw-live mw-writing";
  root.setAttribute("role", "figure");
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  root.addEventListener("keydown", event => event.stopPropagation());
  el.append(root);
  let away = -1;  // where the reader has scrolled to; -1: at the end
  const draw = () => {
    const before = root.querySelector("[data-end]");
    const held = before && before === document.activeElement;
    if (before) away = before.scrollHeight - before.scrollTop - before.clientHeight > 30 ? before.scrollTop : -1;
    root.setAttribute("aria-label", model.get("label"));
    patch(root, model.get("html"));
    root.dataset.drawn = Number(root.dataset.drawn || 0) + 1;
    const now = root.querySelector("[data-end]");
    if (!now) return;
    now.scrollTop = away < 0 ? now.scrollHeight : away;
    if (held) now.focus({ preventScroll: true });
  };
  model.on("change:html", draw);
  model.on("change:label", draw);
  draw();
  requestAnimationFrame(draw);  // heights are known once the page has it
}
export default { render };
