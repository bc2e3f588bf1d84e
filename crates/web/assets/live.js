// Keeps the page current. One tab of the browser has the stream for all, because HTTP/1.1 allows six connections: it holds
// a lock, and passes on what the other tabs want to know. A fragment replaces a part of the page without touching what
// the reader does there.
import { base, program, setText, showTimes, span } from "./page.js";

const policy = globalThis.trustedTypes?.createPolicy("fragments", { createHTML: (html) => html }) ?? { createHTML: (html) => html };
const own = location.pathname + location.search;
const ownPage = own.startsWith(base) ? own.slice(base.length) : own;
const tab = Math.random();
const age = document.getElementById("age"), said = document.getElementById("age-said");
/** A tab that no sign of life reaches for so long shows stale numbers. */
const STALE_MS = 6000;
const HIDDEN_MS = 30000;
const POLL_MS = 5000;
/** The sections of this page have come: before that they are as old as the page. */
let hasSections = false;
let lastAt = Date.now(), why = "", wasLoggedOut = false;

/** Our server's HTML as elements. */
export const fragment = (html) => {
  const template = document.createElement("template");
  template.innerHTML = policy.createHTML(html);
  showTimes(template.content);
  return template.content;
};

/** Not the property: that of a form is its field with the name `id`. */
const idOf = (node) => node.getAttribute?.("id");
/** Makes `old` like `fresh`, and keeps every element that is in both, with its focus and its scroll position. */
const morph = (old, fresh) => {
  // A part that a script of ours keeps, or a form that its reader fills in.
  if ("own" in old.dataset || (old.nodeName === "FORM" && old.contains(document.activeElement))) return;
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    // What the reader has opened stays open.
    if (!fresh.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
  }
  const known = new Map([...old.children].filter(idOf).map((child) => [idOf(child), child]));
  let next = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const id = idOf(child), keyed = id && known.get(id);
    if (keyed) {
      known.delete(id);
      if (keyed === next) next = next.nextSibling;
      else old.insertBefore(keyed, next);
      morph(keyed, child);
    } else if (!id && next && !idOf(next) && next.nodeName === child.nodeName) {
      const same = next;
      next = next.nextSibling;
      if (child.nodeType === Node.ELEMENT_NODE) morph(same, child);
      else if (same.data !== child.data) same.data = child.data;
    } else {
      old.insertBefore(child, next);
    }
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
};
const swap = (fresh) => {
  const old = document.getElementById(fresh.id);
  if (old) morph(old, fresh);
  else document.getElementById("main")?.append(fresh);
};
const swapAll = (fragments) => {
  for (const fresh of fragments) if (fresh) swap(fresh);
  document.dispatchEvent(new Event("swapped"));
};

const showAge = () => {
  if (!age || (document.hidden && !why)) return;
  const ms = Math.max(0, Date.now() - lastAt);
  if (!hasSections && !why && ms < STALE_MS) return;
  const isLive = !why && ms < STALE_MS;
  age.className = isLive ? "live" : "stale";
  setText(age, isLive ? `live · ${(ms / 1000).toFixed(1)} s old` : `stale · ${span(Math.max(ms / 1000, 1))} old${why ? ` · ${why}` : ""}`);
  // Only a change of this is read out.
  setText(said, isLive ? "live" : `stale ${why}`);
  document.body.classList.toggle("stale", !isLive);
};
const fresh = () => {
  [lastAt, why] = [Date.now(), ""];
  showAge();
};
const stale = (reason) => {
  why = reason;
  showAge();
};

// Without the stream: the sections of this page, every few seconds.
let tag = "", pollTimer;
const poll = async () => {
  clearTimeout(pollTimer);
  if (document.hidden) return;
  try {
    const response = await fetch(`${base}/live/now?page=${encodeURIComponent(own)}`, tag ? { headers: { "If-None-Match": tag } } : {});
    if (response.status === 401) {
      wasLoggedOut = true;
      return stale(`the session has ended: ${program} dashboard link`);
    }
    // Another session has another token, which only a new page has.
    if (wasLoggedOut) return location.reload();
    if (response.ok) {
      tag = response.headers.get("ETag") ?? "";
      swapAll([...fragment(await response.text()).children]);
    } else if (response.status !== 304) {
      return stale((await response.text()).length ? `the server answers ${response.status}` : "");
    }
    hasSections = true;
    fresh();
    pollTimer = setTimeout(poll, POLL_MS);
  } catch {
    stale("the server cannot be reached");
  }
};

// The stream, in the tab that leads.
const channel = globalThis.BroadcastChannel ? new BroadcastChannel(`queuectl${base}`) : undefined;
const tell = (message) => channel?.postMessage({ ...message, tab });
const wants = new Map();
let stream, isLeader = false, isAsleep = false, release, retryTimer, retryMs = 250;
const isOpen = () => stream?.readyState === EventSource.OPEN;

const apply = ({ page, sections }) => {
  if (page !== ownPage) return;
  swapAll(Object.values(sections).map((html) => fragment(html).firstElementChild));
  hasSections = true;
  fresh();
};
const connect = () => {
  clearTimeout(retryTimer);
  stream?.close();
  if (!isLeader) return;
  const pages = [...new Set([own, ...[...wants.values()].map((want) => want.page)])];
  stream = new EventSource(`${base}/live?page=${encodeURIComponent(pages.join(" "))}`);
  const alive = () => { fresh(); tell({ alive: true }); };
  stream.addEventListener("open", () => {
    // The page of the session before is replaced; it must not look current meanwhile.
    if (wasLoggedOut) {
      stream.close();
      return location.reload();
    }
    retryMs = 250;
    clearTimeout(pollTimer);
  });
  stream.addEventListener("beat", alive);
  stream.addEventListener("sections", (event) => {
    const data = JSON.parse(event.data);
    apply(data);
    tell({ data });
    alive();
  });
  stream.addEventListener("stale", (event) => {
    const reason = JSON.parse(event.data).why;
    stale(reason);
    tell({ down: reason });
  });
  const lost = () => {
    stream.close();
    stale("the server cannot be reached");
    tell({ down: why });
    retryMs = Math.min(retryMs * 2, POLL_MS);
    clearTimeout(retryTimer);
    retryTimer = setTimeout(connect, retryMs);
    poll();
  };
  stream.addEventListener("error", lost);
  stream.addEventListener("bye", lost);
};
let changeTimer;
const changed = () => {
  clearTimeout(changeTimer);
  changeTimer = setTimeout(connect, 30);
};
const want = () => tell({ want: ownPage === own ? own : base + ownPage });
channel?.addEventListener("message", ({ data: message }) => {
  if (message.alive) fresh();
  if (message.data) apply(message.data);
  if (message.down) stale(message.down);
  if (message.who && !isAsleep) want();
  if (!isLeader) return;
  if (message.gone) wants.delete(message.tab);
  if (message.want) {
    const isNew = !wants.has(message.tab);
    wants.set(message.tab, { page: message.want, at: Date.now() });
    // A new tab gets the whole state, as everybody does on a new connection.
    if (isNew) changed();
  }
});
const lead = () => new Promise((resolve) => {
  isLeader = true;
  release = resolve;
  tell({ who: true });
  changed();
});
const join = () => {
  isAsleep = false;
  if (!navigator.locks || !channel) return lead();
  want();
  navigator.locks.request(`queuectl${base}`, () => (isAsleep ? undefined : lead())).catch(() => lead());
};
const leave = () => {
  isAsleep = true;
  isLeader = false;
  wants.clear();
  clearTimeout(retryTimer);
  stream?.close();
  tell({ gone: true });
  release?.();
};

let hiddenTimer;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiddenTimer);
  if (document.hidden) hiddenTimer = setTimeout(leave, HIDDEN_MS);
  else if (isAsleep) join();
  else showAge();
});
addEventListener("pagehide", leave);
addEventListener("pageshow", (event) => event.persisted && join());
setInterval(() => {
  for (const [other, { at }] of wants) if (Date.now() - at > 4 * POLL_MS) wants.delete(other);
  showAge();
}, 1000);
setInterval(() => {
  if (document.hidden || isAsleep) return;
  if (!isLeader) want();
  // The tab that leads may be stopped, or have lost its stream.
  if (!(isLeader && isOpen()) && Date.now() - lastAt > STALE_MS) poll();
}, POLL_MS);
join();
