// Shows what Python drew; whatever carries data-pick can be clicked, or focused and taken with Enter or Space.
function render({ model, el }) {
  const root = document.createElement("div");
  root.className = "mw mw-live mw-picks";
  root.setAttribute("role", "figure");
  root.setAttribute("data-lm-suppress-shortcuts", "true");
  el.append(root);
  let number = model.get("picked").number;
  const pick = event => {
    const part = event.target.closest("[data-pick]");
    if (!part || !root.contains(part)) return;
    event.preventDefault();
    event.stopPropagation();
    model.set("picked", { number: ++number, value: part.dataset.pick });
    model.save_changes();
  };
  root.addEventListener("click", pick);
  root.addEventListener("keydown", event => {
    if (event.key === "Enter" || event.key === " ") pick(event);
    else event.stopPropagation();
  });
  const draw = () => {
    const focused = root.contains(document.activeElement) ? document.activeElement.dataset?.pick : undefined;
    const scrolled = [...root.querySelectorAll("[data-scrolls]")].map(part => part.scrollTop);
    root.setAttribute("aria-label", model.get("label"));
    patch(root, model.get("html"));
    root.dataset.drawn = Number(root.dataset.drawn || 0) + 1;
    root.querySelectorAll("[data-scrolls]").forEach((part, n) => { part.scrollTop = scrolled[n] || 0; });
    if (focused !== undefined) root.querySelector(`[data-pick="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  };
  model.on("change:html", draw);
  model.on("change:label", draw);
  draw();
}
export default { render };
