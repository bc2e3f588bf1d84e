// What every page has: times in the reader's zone, the theme, copying and the keys.

export const { base, program } = document.body.dataset;
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
    // The event of the dialog before this one may come late.
    dialog.onclose = () => dialog.open || resolve(dialog.returnValue);
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
export const buttons = (...all) => el("div", { className: "buttons" }, ...all);

// Times
let zone = new URLSearchParams(location.search).get("tz") ?? localStorage.getItem("queuectl-zone") ?? "local";
const clocks = () => {
  const timeZone = zone === "local" ? undefined : zone;
  const make = (options) => new Intl.DateTimeFormat("en-GB", { timeZone, ...options });
  const line = { hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 }, date = { dateStyle: "short" };
  return { clock: make({ timeStyle: "medium" }), line: make(line), day: make(date), both: make({ ...date, timeStyle: "short" }), full: make({ ...date, timeStyle: "long" }) };
};
/** The clock of the store, which may differ from that of the browser. */
const ageElement = document.getElementById("age");
const skew = ageElement?.dataset.now ? Date.parse(ageElement.dataset.now) - Date.now() : 0;
const UNITS = [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]];
export const span = (seconds) => {
  const at = seconds < 1 ? 3 : UNITS.findIndex(([length]) => seconds >= length);
  const [length, unit] = UNITS[at], [part, name] = UNITS[at + 1] ?? [Infinity];
  const whole = Math.floor(seconds / length), rest = whole < 10 ? Math.floor((seconds % length) / part) : 0;
  return `${whole}${unit}${rest ? `${rest}${name}` : ""}`;
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
    if (show === "due" && distance >= 0) setText(element, "due now");
    else if (show === "ago" || show === "due") setText(element, Math.abs(distance) < 1 ? "just now" : distance > 0 ? `${span(distance)} ago` : `in ${span(-distance)}`);
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
    toast(`There is no time zone “${wanted}”.`, true);
    return setZone("local");
  }
  if (zoneChoice) Object.assign(zoneChoice, { value: "", placeholder: zone });
  showTimes();
};
zoneChoice?.after(el("datalist", { id: "zones" }, ...["local", "UTC", ...Intl.supportedValuesOf("timeZone")].map((value) => el("option", { value }))));
zoneChoice?.addEventListener("change", () => {
  const wanted = zoneChoice.value || zone;
  localStorage.setItem("queuectl-zone", wanted);
  setZone(wanted);
});
setZone(zone);
setInterval(() => document.hidden || showTimes(document, 'time[data-show="ago"], time[data-show="due"]'), 1000);
// A page whose server computes times on a clock gets that of the reader.
document.addEventListener("click", ({ target }) => {
  const link = target.closest("a[data-zoned]");
  if (link) link.search += `&tz=${encodeURIComponent(zone === "local" ? Intl.DateTimeFormat().resolvedOptions().timeZone : zone)}`;
});
if (innerWidth <= 640) document.querySelector(".week .today")?.scrollIntoView({ inline: "center", block: "nearest" });

// Theme: in a cookie, so that the server writes it into the page and nothing flashes.
document.getElementById("theme")?.addEventListener("click", () => {
  const { dataset } = document.documentElement;
  const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
  dataset.theme = (dataset.theme ?? (isDark && "dark")) === "dark" ? "light" : "dark";
  document.cookie = `queuectl-theme=${dataset.theme}; Path=${base || "/"}; SameSite=Strict; Max-Age=31536000`;
});

// Copying: what the button names, or the text before it.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  const text = button?.dataset.copy || button?.previousElementSibling.textContent;
  if (text) navigator.clipboard.writeText(text).then(() => toast("Copied."), () => toast("The browser does not allow copying here.", true));
});

// A form that a choice alone completes.
document.addEventListener("change", (event) => event.target.closest("[data-submit]")?.form.requestSubmit());

// An empty field is no part of the URL.
document.addEventListener("formdata", ({ target, formData }) => {
  if (target.method === "get") for (const [name, value] of [...formData]) if (value === "") formData.delete(name);
});

// Changes are made by a script that most visits do not need.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-act]");
  if (button) (await import("./act.js")).perform(button);
});

// Keys
if (/Mac/.test(navigator.platform)) setText(document.querySelector("#palette span"), "⌘K");
const open = (name) => async () => (await import("./palette.js"))[name]();
document.getElementById("help")?.addEventListener("click", open("openHelp"));
document.addEventListener("click", ({ target }) => target.closest("#palette, #more") && open("openPalette")());
const rows = () => [...document.querySelectorAll("main .rows tbody tr, main .list li")].filter((row) => row.querySelector("a"));
const move = (step) => {
  const all = rows();
  const at = all.findIndex((row) => row.contains(document.activeElement));
  const row = all.at(at < 0 ? Math.min(step, 0) : Math.min(Math.max(at + step, 0), all.length - 1));
  (row?.querySelector("a.id") ?? row?.querySelector("a"))?.focus();
};
let awaitsPlace = false;
/** What the keys of every page do; the script of a page adds its own. */
export const keys = {
  "?": open("openHelp"), g: () => (awaitsPlace = true), j: () => move(1), k: () => move(-1),
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
    document.querySelector(`[data-place="${CSS.escape(event.key)}"]`)?.click();
    return;
  }
  const link = /^[a-zA-Z]$/.test(event.key) ? document.querySelector(`main [data-key="${event.key}"]`) : undefined;
  const act = keys[event.key] ?? (link && (() => link.click()));
  if (act) { event.preventDefault(); act(event); }
});
