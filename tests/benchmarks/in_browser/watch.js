// Runs in the page: notes when a hand moves something, and when the picture that belongs to it has been painted.
//
// A picture's signature is all that its live views hold, the sentence, and how many parts are dimmed. What a dimmed
// part holds is left out: it says itself that it is of earlier settings. A signature is read in an
// animation frame after the document has changed; when the next frame begins the changed document has been painted, and
// that moment is noted with the signature. A stale frame cannot pass for the new picture: its signature is the old one.
(() => {
  const PICTURE = ".mw-live:not(.mw-top)", DIMMED = ".mw-dim, .mw-stale", known = new Map(), frames = [];
  let dirty = true, last = -1, changed = performance.now(), input = null, number = 0, before = null;
  const parts = selector => [...document.querySelectorAll(selector)];
  const state = () => parts(".mw-bottom .mw-state").map(box => box.value).join("\n");
  // the settings, and the device that a walk through the mesh has chosen, which is none of them
  const place = () => [state(), ...parts(".mw-live.mw-slices").map(view => view.dataset.device)].join("\n");
  const numbered = text => { if (!known.has(text)) known.set(text, known.size); return known.get(text); };
  // names drawn by lot at each drawing say nothing about the picture
  const plain = text => text.replace(/(id="|url\(#|url\(&quot;#|trace)[\w-]*/g, "$1");
  function signature() {
    const pictures = parts(PICTURE).map(view => view.closest(DIMMED) ? "of earlier settings" : plain(view.innerHTML));
    const words = parts(".mw-bottom .mw-says").map(says => says.innerHTML);
    return [...pictures, ...words, parts(DIMMED).length].join("\n");
  }
  function look() {
    if (dirty) {
      dirty = false;
      const now = numbered(signature());
      if (now !== last) {
        last = now;
        requestAnimationFrame(() => { changed = performance.now(); frames.push([changed, now]); });
      }
    }
    requestAnimationFrame(look);
  }
  const note = event => { input = { at: event.timeStamp, value: String(event.target.value ?? event.key) }; number++; };
  for (const kind of ["input", "change"]) document.addEventListener(kind, note, true);
  document.addEventListener("keydown", event => {
    if (event.target.matches("[role=listbox], [role=application]")) note(event);
  }, true);
  new MutationObserver(() => { dirty = true; changed = performance.now(); }).observe(document.querySelector(".jp-Notebook"),
    { attributes: true, childList: true, characterData: true, subtree: true });
  requestAnimationFrame(look);

  // Resolves once nothing has changed for `quiet` ms, `least` ms have passed, and the kernel has answered if it must.
  async function settled([least, quiet, most, answers]) {
    const begun = performance.now();
    const done = now => {
      if (now - begun > most) return true;
      if (number === before.number) return now - begun > 1000;      // nothing was moved
      return now - begun > least && now - changed > quiet && (!answers || state() !== before.state);
    };
    while (!done(performance.now())) await new Promise(requestAnimationFrame);
    return { moved: number > before.number, at: input?.at, value: input?.value, was: before.picture, is: last,
      frames: frames.slice(before.frames), state: place() };
  }
  const begin = () => { before = { number, frames: frames.length, picture: last, state: state() }; };
  window.meshworkSpeed = { begin, settled };
})();
