// The script of the console. Every page works without it: it adds keys, live
// updates, and loads long differences when they are opened. It never makes
// markup from a text: a response is parsed by the browser as a document, which
// runs no scripts.
"use strict";

const load = (address, done) => {
  const request = new XMLHttpRequest();
  request.responseType = "document";
  request.open("GET", address);
  request.onload = () => done(request.status === 200 ? request.response : null);
  request.onerror = () => done(null);
  request.send();
};

// enter exchanges the token of the address, which the server has not seen.
const enter = () => {
  const form = document.getElementById("enter");
  const token = location.hash.slice(1);
  if (!form || !token) return;
  history.replaceState(null, "", "/enter");
  form.elements.token.value = token;
  form.submit();
};

const entries = () => [...document.querySelectorAll("main .entry")].filter((e) => e.getClientRects().length > 0);

const step = (by) => {
  const all = entries();
  if (all.length === 0) return;
  const at = all.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1);
  all[next].focus();
  all[next].scrollIntoView({ block: "nearest" });
};

const keys = {
  j: () => step(1),
  k: () => step(-1),
  n: () => { location.href = "/"; },
  t: () => { location.href = "/timeline"; },
  g: () => { location.href = "/grants"; },
  h: () => { location.href = "/health"; },
  d: () => follow("d"),
  u: () => follow("u"),
  w: () => follow("w"),
  "/": () => {
    const field = document.getElementById("search");
    if (field) field.focus();
    else location.href = "/timeline#search";
  },
  "?": () => {
    const list = document.getElementById("keys");
    if (list && !list.open) list.showModal();
  },
};

const follow = (key) => {
  const link = document.querySelector(`main [data-key="${key}"]`);
  if (link) location.href = link.href;
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input, select, textarea")) return;
  const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

// A notification says how much waits for an answer. It has no text of an agent,
// which could pretend to be of the system.
const waiting = () => Number(document.querySelector("#waiting[data-count]")?.dataset.count || 0);
let told = 0;
const notify = () => {
  const now = waiting();
  if (now > told && "Notification" in window && Notification.permission === "granted" && !document.hasFocus()) {
    const shown = new Notification("remit", { body: now === 1 ? "1 answer is missing" : now + " answers are missing", tag: "remit" });
    shown.onclick = () => window.focus();
  }
  told = now;
};

const offerNotifications = () => {
  const button = document.getElementById("notify");
  told = waiting();
  if (!button || !document.getElementById("waiting") || !("Notification" in window) || Notification.permission !== "default") return;
  button.hidden = false;
  button.addEventListener("click", () => Notification.requestPermission().then(() => { button.hidden = true; }));
};

// refresh shows the newest state of a page. It keeps the place of a reader: what
// is folded, and what has the focus.
let busy = false, again = false;
const refresh = () => {
  const field = document.activeElement && document.activeElement.closest("main input, main select");
  const notice = document.querySelector("main .new");
  if (notice) { // a list that moves while it is read is no help
    notice.hidden = false;
    notice.querySelector("a").href = document.body.dataset.live;
    return;
  }
  if (field) return;
  if (busy) { again = true; return; }
  busy = true;
  load(document.body.dataset.live, (page) => {
    const main = page && page.getElementById("main");
    if (main) {
      const focused = document.activeElement && document.activeElement.getAttribute("href");
      const closed = [...document.querySelectorAll("main details:not([open])")].map((d) => d.id);
      const fresh = document.importNode(main, true);
      for (const d of fresh.querySelectorAll("details")) if (d.id && closed.includes(d.id)) d.open = false;
      document.getElementById("main").replaceChildren(...fresh.childNodes);
      const link = focused && [...document.querySelectorAll("main a")].find((a) => a.getAttribute("href") === focused);
      if (link) link.focus({ preventScroll: true });
      if (page.body.dataset.head) document.body.dataset.head = page.body.dataset.head;
      notify();
    }
    busy = false;
    if (again) { again = false; refresh(); }
  });
};

const live = () => {
  const state = document.getElementById("live");
  if (!state || !document.body.dataset.live) return;
  const stream = new EventSource("/events?after=" + encodeURIComponent(document.body.dataset.head || "0"));
  stream.onopen = () => { state.textContent = "live"; };
  stream.onerror = () => { state.textContent = "no connection to remit console"; };
  stream.addEventListener("change", refresh);
};

// A long difference is loaded when a person opens it.
document.addEventListener("toggle", (event) => {
  const file = event.target;
  if (!(file instanceof HTMLDetailsElement) || !file.open) return;
  const link = file.querySelector("a.load");
  if (!link || file.dataset.loading) return;
  file.dataset.loading = "1";
  load(link.href, (page) => {
    const fresh = page && page.querySelector("details.file");
    if (fresh) file.replaceChildren(...document.importNode(fresh, true).childNodes);
  });
}, true);

document.addEventListener("DOMContentLoaded", () => {
  enter();
  const help = document.getElementById("help");
  if (help) {
    help.hidden = false;
    help.addEventListener("click", keys["?"]);
  }
  if (location.hash === "#search" && document.getElementById("search")) document.getElementById("search").focus();
  offerNotifications();
  live();
});
