// Keeps a page current: the stream sends sections that changed, and they replace those in the page without touching
// what the reader does there. A hidden tab has no stream, so that any number of tabs can be open.
import { base, showTimes, span } from "./page.js";

const policy = globalThis.trustedTypes?.createPolicy("fragments", { createHTML: (html) => html }) ?? { createHTML: (html) => html };
const age = document.getElementById("age");
let stream, lastAt = Date.now(), why = "", hiddenTimer, retryTimer, retryMs = 500, wasLoggedOut = false;

/** Makes `old` like `fresh`, and keeps every element that is in both, with its focus and its scroll position. */
const morph = (old, fresh) => {
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    // What the reader has opened stays open.
    if (!fresh.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
  }
  const known = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  let next = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    const keyed = child.id ? known.get(child.id) : undefined;
    if (keyed) {
      known.delete(child.id);
      if (keyed === next) next = next.nextSibling;
      else old.insertBefore(keyed, next);
      morph(keyed, child);
    } else if (!child.id && next && !next.id && next.nodeName === child.nodeName) {
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

const swap = (id, html) => {
  const old = document.getElementById(id);
  const template = document.createElement("template");
  template.innerHTML = policy.createHTML(html);
  const fresh = template.content.firstElementChild;
  if (!fresh) return;
  showTimes(template.content);
  if (!old) {
    document.getElementById("main")?.append(fresh);
    return;
  }
  const log = old.querySelector(".log");
  const isAtEnd = log && log.scrollHeight - log.scrollTop - log.clientHeight < 24;
  const hasTimes = log?.classList.contains("times");
  morph(old, fresh);
  const after = old.querySelector(".log");
  if (after && hasTimes) after.classList.add("times");
  if (after && (isAtEnd || !log) && !location.search.includes("line=")) after.scrollTop = after.scrollHeight;
};

const showAge = () => {
  if (!age) return;
  const isLive = stream?.readyState === EventSource.OPEN && why === "";
  const seconds = Math.round((Date.now() - lastAt) / 1000);
  age.className = isLive ? "live" : document.hidden ? "" : "stale";
  age.textContent = isLive ? "live" : `stale · ${span(Math.max(seconds, 1))} old${why ? ` · ${why}` : ""}`;
  document.body.classList.toggle("stale", !isLive && seconds > 2);
};

const isLoggedOut = async () => {
  try {
    return (await fetch(`${base}/api/v1/queues`)).status === 401;
  } catch {
    return false;
  }
};

const connect = () => {
  clearTimeout(retryTimer);
  stream?.close();
  stream = new EventSource(`${base}/live?page=${encodeURIComponent(location.pathname + location.search)}`);
  stream.addEventListener("open", () => {
    // Another session has another token, which only a new page has.
    if (wasLoggedOut) location.reload();
    retryMs = 500;
    why = "";
    showAge();
  });
  stream.addEventListener("sections", (event) => {
    lastAt = Date.now();
    why = "";
    for (const [id, html] of Object.entries(JSON.parse(event.data))) swap(id, html);
    document.dispatchEvent(new Event("swapped"));
    showAge();
  });
  stream.addEventListener("stale", (event) => {
    why = JSON.parse(event.data).why;
    showAge();
  });
  stream.addEventListener("error", async () => {
    stream.close();
    showAge();
    retryMs = Math.min(retryMs * 2, 5000);
    clearTimeout(retryTimer);
    retryTimer = setTimeout(() => document.hidden || connect(), retryMs);
    if (await isLoggedOut()) {
      wasLoggedOut = true;
      why = "the session has ended: queuectl dashboard link";
      showAge();
    }
  });
};

document.addEventListener("visibilitychange", () => {
  clearTimeout(hiddenTimer);
  if (!document.hidden) {
    if (stream?.readyState !== EventSource.OPEN) connect();
    return;
  }
  hiddenTimer = setTimeout(() => {
    lastAt = Date.now();
    stream?.close();
  }, 5000);
});
addEventListener("pagehide", () => stream?.close());
addEventListener("pageshow", (event) => event.persisted && connect());
setInterval(() => {
  if (stream?.readyState === EventSource.OPEN && why === "") lastAt = Date.now();
  if (!document.hidden) showAge();
}, 1000);
if (!document.hidden) connect();
