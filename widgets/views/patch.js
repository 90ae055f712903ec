// Turns what stands under a node into new HTML, and touches only what differs: while a hand drags most of a picture
// stays, and what stays need not be parsed into a new tree, laid out and painted. Attributes in `own` belong to the page.
function patchAttributes(old, now, own) {
  const news = now.attributes, names = own.length ? old.getAttributeNames().filter(name => !own.includes(name)) : null;
  if ((names || old.attributes).length !== news.length) return false;
  for (let n = 0; n < news.length; n++) if ((names ? names[n] : old.attributes[n].name) !== news[n].name) return false;
  for (const { name, value } of news) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  return true;
}

function patchNode(old, now, own) {
  if (old.nodeType !== now.nodeType || old.nodeName !== now.nodeName) return false;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== now.data) old.data = now.data;
    return true;
  }
  if (!patchAttributes(old, now, own)) return false;
  patchChildren(old, now, own);
  return true;
}
function patchChildren(root, fresh, own) {
  if (!root.firstChild) { root.append(...fresh.childNodes); return; }
  const olds = [...root.childNodes], nows = [...fresh.childNodes];
  nows.forEach((now, n) => {
    if (n >= olds.length) root.append(now);
    else if (!patchNode(olds[n], now, own)) olds[n].replaceWith(now);
  });
  olds.slice(nows.length).forEach(old => old.remove());
}
function patch(root, html, own = []) {
  if (root.patched === html) return false;
  root.patched = html;
  const holder = document.createElement("template");
  holder.innerHTML = html;
  patchChildren(root, holder.content, own);
  return true;
}
