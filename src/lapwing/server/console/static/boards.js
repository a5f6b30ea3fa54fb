// What makes dashboards quicker. All of them work without it.
"use strict";

document.querySelector("[data-fill]")?.addEventListener("click", () => document.documentElement.requestFullscreen?.());

// Tiles that change come from the service.
const board = document.querySelector("[data-events]");
if (board) {
  const state = document.getElementById("live");
  const IDLE = 3600e3;  // nobody has looked for an hour: what goes on asking would keep the sign-in alive
  let seen = Date.now(), source = null;
  const follow = () => {
    source = new EventSource(board.dataset.events);
    source.addEventListener("open", () => { state.textContent = "This page updates automatically."; });
    source.addEventListener("error", () => { state.textContent = "The service does not respond. This page will try again."; });
    source.addEventListener("reload", () => location.reload());
    source.addEventListener("tile", (event) => {
      const { place, html } = JSON.parse(event.data);
      const tile = document.getElementById(`tile-${place}`);
      const parsed = new DOMParser().parseFromString(html, "text/html");
      tile?.replaceChildren(...parsed.body.childNodes);
    });
  };
  for (const name of ["pointermove", "keydown", "scroll", "focus"]) addEventListener(name, () => {
    seen = Date.now();
    if (!source) follow();
  }, { passive: true });
  setInterval(() => {
    if (source && Date.now() - seen > IDLE) {
      source.close();
      source = null;
      state.textContent = "Updates paused. Move the pointer to resume.";
    }
  }, 30e3);
  addEventListener("pagehide", () => { source?.close(); source = null; });
  follow();
}
