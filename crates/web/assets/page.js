// What every page has: times in the reader's zone, the theme, copying and the keys.

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
    dialog.addEventListener("close", function closed() {
      // The event of the dialog before this one may come late.
      if (dialog.open) return;
      dialog.removeEventListener("close", closed);
      resolve(dialog.returnValue);
    });
  });
};

// What a screen would not show, or not where it is.
const HIDDEN = /[\p{Cc}\p{Cf}\u2028\u2029]/gu;
const hex = (number, digits) => number.toString(16).padStart(digits, "0");

/** A word as a shell needs it; what a screen would hide is escaped, as bash and zsh read it. */
export const quote = (word) => {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  if (word.search(HIDDEN) < 0) return `'${word.replaceAll("'", "'\\''")}'`;
  return `$'${word.replace(/[\\']/g, "\\$&").replace(HIDDEN, (one) => `\\U${hex(one.codePointAt(0), 8)}`)}'`;
};

/** JSON with the same escapes. */
export const jsonOf = (value) => JSON.stringify(value).replace(HIDDEN, (one) => one.split("").map((unit) => `\\u${hex(unit.charCodeAt(0), 4)}`).join(""));

/** The buttons of a dialog. The first one answers the Enter key, so in a question it is the harmless one. */
export const buttons = (yes) => el("div", { className: "buttons" }, el("button", { value: "yes", className: "primary" }, yes), el("button", { value: "no" }, "Cancel"));

// Times
const ZONES = ["local", "UTC"];
let zone = new URLSearchParams(location.search).get("tz") ?? localStorage.getItem("queuectl-zone") ?? "local";
const clocks = () => {
  const timeZone = zone === "local" ? undefined : zone;
  const make = (options) => new Intl.DateTimeFormat("en-GB", { timeZone, hourCycle: "h23", ...options });
  const time = { hour: "2-digit", minute: "2-digit", second: "2-digit" };
  const date = { year: "numeric", month: "2-digit", day: "2-digit" };
  return { clock: make(time), line: make({ ...time, fractionalSecondDigits: 3 }), day: make(date), both: make({ ...date, hour: "2-digit", minute: "2-digit" }), full: make({ ...date, ...time, timeZoneName: "short" }) };
};
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
export const setText = (element, text) => {
  if (element && element.textContent !== text) element.textContent = text;
};
let clock;
export const showTimes = (root = document, which = "time[datetime]") => {
  const now = Date.now() + skew;
  for (const element of root.querySelectorAll(which)) {
    const at = Date.parse(element.dateTime), { show } = element.dataset;
    const distance = Math.round((now - at) / 1000);
    if (show === "ago") setText(element, Math.abs(distance) < 1 ? "just now" : distance > 0 ? `${span(distance)} ago` : `in ${span(-distance)}`);
    else if (show === "line") setText(element, clock.line.format(at));
    else setText(element, (clock.day.format(at) === clock.day.format(now) ? clock.clock : clock.both).format(at));
    const title = clock.full.format(at);
    if (show !== "line" && element.title !== title) element.title = title;
  }
};
const zoneChoice = document.getElementById("zone");
const setZone = (wanted) => {
  try {
    zone = wanted;
    clock = clocks();
  } catch {
    zone = "local";
    clock = clocks();
    toast(`There is no time zone “${wanted}”.`, true);
  }
  if (zoneChoice) {
    const names = [...new Set([...ZONES, zone])];
    zoneChoice.replaceChildren(...names.map((name) => el("option", { value: name }, name === "local" ? `local (${new Intl.DateTimeFormat().resolvedOptions().timeZone})` : name)), el("option", { value: "" }, "other zone …"));
    zoneChoice.value = zone;
  }
  showTimes();
};
const askZone = async () => {
  const input = el("input", { autocomplete: "off" });
  input.setAttribute("list", "zones");
  input.setAttribute("aria-label", "Time zone");
  const list = el("datalist", { id: "zones" }, ...Intl.supportedValuesOf("timeZone").map((name) => el("option", { value: name })));
  const closed = ask("Show times in the zone", input, list, buttons("Show"));
  input.focus();
  return (await closed) === "yes" && input.value ? input.value : zone;
};
zoneChoice?.addEventListener("change", async () => {
  const wanted = zoneChoice.value || (await askZone());
  localStorage.setItem("queuectl-zone", wanted);
  setZone(wanted);
});
setZone(zone);
setInterval(() => document.hidden || showTimes(document, 'time[data-show="ago"]'), 1000);

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

// A form that a choice alone completes.
document.addEventListener("change", (event) => event.target.closest("[data-submit]")?.form.requestSubmit());

// An empty field is no part of the URL.
document.addEventListener("formdata", ({ target, formData }) => {
  if (target.method === "get") for (const [name, value] of [...formData]) if (value === "") formData.delete(name);
});

// Changes are made by a script that most visits do not need.
let acting;
export const loadAct = () => (acting ??= import("./act.js"));
if (document.querySelector("form[data-form]")) loadAct();
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-act]");
  if (button && button.type !== "submit") (await loadAct()).perform(button);
});

// Keys
const open = (name) => async () => (await import("./palette.js"))[name]();
document.getElementById("help")?.addEventListener("click", open("openHelp"));
document.getElementById("palette")?.addEventListener("click", open("openPalette"));
const PLACES = { o: "/", j: "/jobs", d: "/dead", q: "/queues", w: "/workers", s: "/schedules", b: "/batches", h: "/hooks", e: "/events", c: "/settings", n: "/enqueue" };
const rows = () => [...document.querySelectorAll("main .rows tbody tr, main .list li")].filter((row) => row.querySelector("a"));
const move = (step) => {
  const all = rows();
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const row = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + step, 0), all.length - 1)];
  (row?.querySelector("a.id") ?? row?.querySelector("a"))?.focus();
};
let awaitsPlace = false;
/** What the keys of every page do; the script of a page adds its own. */
export const keys = {
  "?": open("openHelp"), g: () => { awaitsPlace = true; }, j: () => move(1), k: () => move(-1),
  "/": () => {
    const filter = document.querySelector(".more-filters");
    if (filter) filter.open = true;
    (document.querySelector(".find input[type=search]") ?? filter?.querySelector("input"))?.focus();
  },
};
document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    if (!dialog.open) open("openPalette")();
    return;
  }
  if (event.key === "Escape" && event.target.matches("input, textarea, select")) event.target.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || dialog.open || event.target.closest("input:not([type=checkbox]), textarea, select")) return;
  if (awaitsPlace) {
    awaitsPlace = false;
    if (PLACES[event.key]) location.assign(base + PLACES[event.key]);
    return;
  }
  const link = /^[a-zA-Z]$/.test(event.key) ? document.querySelector(`main [data-key="${event.key}"]`) : undefined;
  const act = keys[event.key] ?? (link && (() => link.click()));
  if (act) { event.preventDefault(); act(event); }
});
