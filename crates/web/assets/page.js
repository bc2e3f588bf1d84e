// What every page has: times in the reader's zone, the theme, copying, the palette and the keys.

export const base = document.body.dataset.base ?? "";
const dialog = document.getElementById("dialog");
const toastPlace = document.getElementById("toast");

/**
 * An element with properties and children. Children that are strings become text.
 * @param {string} tag
 * @param {Record<string, unknown>} [properties]
 * @param {...(Node|string)} children
 */
export const el = (tag, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
};

let toastEnd;
/** Says what was done, or why it was not. */
export const toast = (text, isBad = false, ...more) => {
  toastPlace.replaceChildren(el("p", { className: isBad ? "bad" : "" }, text, ...more));
  clearTimeout(toastEnd);
  if (more.length === 0) toastEnd = setTimeout(() => toastPlace.replaceChildren(), isBad ? 12000 : 5000);
};

/** Shows a dialog with this title; resolves when it is closed, with the value of the button that closed it. */
export const ask = (title, ...content) => {
  const heading = el("h2", { id: "dialog-title" }, title);
  dialog.replaceChildren(el("form", { method: "dialog" }, heading, ...content));
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue), { once: true });
  });
};

// Times
let zone = localStorage.getItem("queuectl-zone") === "UTC" ? "UTC" : undefined;
const clocks = () => {
  const make = (options) => new Intl.DateTimeFormat("en-GB", { timeZone: zone, hourCycle: "h23", ...options });
  const time = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
  const date = { year: "numeric", month: "2-digit", day: "2-digit" };
  return { time: make(time), day: make(date), both: make({ ...date, hour: "2-digit", minute: "2-digit" }), full: make({ ...date, ...time, timeZoneName: "short" }) };
};
let clock = clocks();
/** The clock of the store, which may differ from that of the browser. */
const ageElement = document.getElementById("age");
const skew = ageElement?.dataset.now ? Date.parse(ageElement.dataset.now) - Date.now() : 0;
const UNITS = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
export const span = (seconds) => {
  const at = Math.max(0, UNITS.findIndex(([length]) => seconds >= length));
  const [length, unit] = seconds < 1 ? UNITS[3] : UNITS[at];
  const whole = Math.floor(seconds / length);
  const next = whole < 10 ? UNITS[(seconds < 1 ? 3 : at) + 1] : undefined;
  const rest = next ? Math.floor((seconds % length) / next[0]) : 0;
  return `${whole}${unit}${rest > 0 ? `${rest}${next[1]}` : ""}`;
};
const setText = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};
export const showTimes = (root = document) => {
  const now = Date.now() + skew;
  for (const element of root.querySelectorAll("time[datetime]")) {
    const at = Date.parse(element.dateTime);
    const distance = Math.round((now - at) / 1000);
    if (element.dataset.show === "ago") {
      setText(element, Math.abs(distance) < 1 ? "just now" : distance > 0 ? `${span(distance)} ago` : `in ${span(-distance)}`);
    } else {
      const isToday = clock.day.format(at) === clock.day.format(now);
      setText(element, (isToday ? clock.time : clock.both).format(at));
    }
    const title = clock.full.format(at);
    if (element.title !== title) element.title = title;
  }
};
const zoneButton = document.getElementById("zone");
const showZone = () => {
  clock = clocks();
  if (zoneButton) zoneButton.textContent = zone ?? "local time";
  showTimes();
};
zoneButton?.addEventListener("click", () => {
  zone = zone ? undefined : "UTC";
  localStorage.setItem("queuectl-zone", zone ?? "local");
  showZone();
});
showZone();
setInterval(() => document.hidden || showTimes(), 1000);

// Theme: in a cookie, so that the server writes it into the page and nothing flashes.
document.getElementById("theme")?.addEventListener("click", () => {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  document.cookie = `queuectl-theme=${root.dataset.theme}; Path=${base || "/"}; SameSite=Strict; Max-Age=31536000`;
});

// Copying
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    toast("Copied.");
  } catch {
    toast("The browser does not allow copying here.", true);
  }
});

// Output: begin at its end, unless a line is named.
const log = document.querySelector(".log");
if (log && !location.hash.startsWith("#L")) log.scrollTop = log.scrollHeight;

// Palette
const pages = () => [...document.querySelectorAll("#rail nav a:not(.brand)")].map((link) => ({ name: link.querySelector(".name").textContent, href: link.href }));
const openPalette = () => {
  const input = el("input", { type: "search", placeholder: "a page, the number or id of a job, a part of a command", autocomplete: "off" });
  input.setAttribute("aria-label", "Go to");
  const list = el("ul");
  let chosen = 0;
  const entries = () => {
    const typed = input.value.trim();
    const found = pages().filter((page) => page.name.toLowerCase().includes(typed.toLowerCase()));
    if (typed) {
      found.push({ name: `Job ${typed}`, href: `${base}/jobs/${encodeURIComponent(typed)}` });
      found.push({ name: `Jobs whose command has “${typed}”`, href: `${base}/jobs?like=${encodeURIComponent(`*${typed}*`)}` });
      found.push({ name: `Jobs in queue ${typed}`, href: `${base}/jobs?queue=${encodeURIComponent(typed)}` });
    }
    return found;
  };
  const show = () => {
    const found = entries();
    chosen = Math.min(Math.max(chosen, 0), found.length - 1);
    list.replaceChildren(...found.map((entry, at) => {
      const link = el("a", { href: entry.href }, entry.name);
      link.setAttribute("aria-selected", String(at === chosen));
      return el("li", {}, link);
    }));
  };
  input.addEventListener("input", () => { chosen = 0; show(); });
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { chosen += step; show(); event.preventDefault(); }
    if (event.key === "Enter") { event.preventDefault(); list.querySelector('[aria-selected="true"]')?.click(); }
  });
  show();
  ask("Go to", input, list);
  input.focus();
};

// Keys
const KEYS = [
  ["Ctrl-K", "go to a page or a job"], ["/", "filter, or find in the output"], ["j k", "next and previous row"], ["Enter", "open the row"],
  ["x", "choose the row"], ["g o", "Overview"], ["g j", "Jobs"], ["g d", "Dead"], ["g q", "Queues"], ["g w", "Workers"], ["g e", "Events"],
  ["t", "times in the output"], ["Esc", "close"],
];
const openHelp = () => {
  const list = el("dl", {}, ...KEYS.flatMap(([key, about]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, about)]));
  ask("Keys", list, el("div", { className: "buttons" }, el("button", { value: "close" }, "Close")));
};
document.getElementById("help")?.addEventListener("click", openHelp);
const PLACES = { o: "/", j: "/jobs", d: "/dead", q: "/queues", w: "/workers", s: "/schedules", b: "/batches", h: "/hooks", e: "/events", n: "/enqueue" };
const rows = () => [...document.querySelectorAll("main .rows tbody tr, main .list li")].filter((row) => row.querySelector("a"));
const move = (step) => {
  const all = rows();
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const row = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1)];
  (row?.querySelector("a.id") ?? row?.querySelector("a"))?.focus();
};
let awaitsPlace = false;
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    if (!dialog.open) openPalette();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || dialog.open || event.target.closest("input:not([type=checkbox]), textarea, select")) return;
  if (awaitsPlace) {
    awaitsPlace = false;
    if (PLACES[event.key]) location.assign(base + PLACES[event.key]);
    return;
  }
  const row = document.activeElement?.closest("tr");
  const act = {
    "?": openHelp, g: () => { awaitsPlace = true; }, j: () => move(1), k: () => move(-1),
    t: () => document.querySelector(".log")?.classList.toggle("times"),
    x: () => row?.querySelector("input[data-choose]")?.click(),
    "/": () => {
      const filter = document.querySelector(".more-filters");
      if (filter) filter.open = true;
      (document.querySelector(".find input[type=search]") ?? filter?.querySelector("input"))?.focus();
    },
  }[event.key];
  if (act) { event.preventDefault(); act(); }
});
