// Nodes as views make them; put before a view's own text by scripts.py, since a view is one module.
const NS = "http://www.w3.org/2000/svg";
const make = (tag, cls, attributes = {}) => {
  const node = document.createElement(tag);
  if (cls) node.className = cls;
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
};
const button = (words, act) => {
  const node = make("button", "mw-button", { type: "button" });
  node.textContent = words;
  node.addEventListener("click", act);
  return node;
};
// A page takes the first pattern or clip of a name, and in a hidden tab that one paints nothing: names are a view's own.
const renamed = (svg, own) => svg.replace(/(id="|url\(#)mw/g, `$1${own}-mw`);
