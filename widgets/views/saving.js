// Makes a file of the SVG that Python wrote: the theme's colours in, and for a PNG the same SVG on a canvas.
// status_view.py puts this text before status_view.js, since a view is one module.
const FINER = 2, MOST_PIXELS = 16384;  // a canvas's pixels for one of the picture; a browser's longest side
const VARIABLE = /var\(\s*(--[\w-]+)\s*(?:,\s*([^()]*(?:\([^()]*\))?[^()]*))?\)/g;
const quoted = text => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "&quot;");

function themed(text, node) {
  const style = getComputedStyle(node);
  return text.replace(VARIABLE, (all, name, instead) => quoted(style.getPropertyValue(name).trim() || instead || "currentColor"));
}
// What of a frame only the page can draw: canvases and plotly charts that are on show.
function liveNodes(root) {
  const frame = root.closest(".mw-explorer") || root;
  return [...frame.querySelectorAll("canvas, .js-plotly-plot")]
    .filter(node => node.clientWidth && !node.parentElement.closest(".js-plotly-plot"));
}
const sizesOf = nodes => nodes.map(node => [node.clientWidth, node.clientHeight]);
async function imageOf(node) {
  if (node.tagName === "CANVAS") return node.toDataURL("image/png");
  const Plotly = await globalThis.__meshwork_plotly__.ready;
  return Plotly.toImage(node, { format: "svg", width: node.clientWidth, height: node.clientHeight });
}
async function filled(text, nodes) {
  if (!text.includes("data-live=")) return text;
  const images = await Promise.all(nodes.map(imageOf));
  return images.reduce((done, image, n) => done.replace(`data-live="${n}"`, `data-live="${n}" href="${quoted(image)}"`), text);
}
async function png(svg) {
  const image = new Image(), address = URL.createObjectURL(svg);
  try {
    image.src = address;
    await image.decode();
    const scale = Math.min(FINER, MOST_PIXELS / Math.max(image.naturalWidth, image.naturalHeight));
    const canvas = document.createElement("canvas");
    canvas.width = Math.round(image.naturalWidth * scale);
    canvas.height = Math.round(image.naturalHeight * scale);
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done, fail) => canvas.toBlob(blob => (blob ? done(blob) : fail(new Error("too large"))), "image/png"));
  } finally { URL.revokeObjectURL(address); }
}
async function saveFile({ name, kind, text }, root, nodes) {
  const svg = new Blob([await filled(themed(text, root), nodes)], { type: "image/svg+xml" });
  const address = URL.createObjectURL(kind === "png" ? await png(svg) : svg), link = document.createElement("a");
  Object.assign(link, { download: name, href: address });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
