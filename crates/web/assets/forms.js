// Forms that create something: the body of the call, the command line and the curl call come from the same fields.
import { base, jsonOf, quote, showTimes, toast } from "./page.js";

const token = document.querySelector('meta[name="session-token"]')?.content ?? "";
const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
const pairs = (parts) => Object.fromEntries(parts.map((part) => { const at = part.indexOf("="); return at < 0 ? [part, ""] : [part.slice(0, at), part.slice(at + 1)]; }));
const numeric = (text) => (/^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text);
const words = (text) => text.split(/[\s,]+/).filter(Boolean);

/** How the text of a field becomes JSON. */
const KINDS = {
  number: numeric,
  list: words,
  codes: (text) => words(text).map(numeric),
  time: (text) => new Date(text).toISOString(),
  pairs: (text) => pairs(lines(text)),
  limits: (text) => Object.fromEntries(Object.entries(pairs(words(text))).map(([name, value]) => [name, numeric(value)])),
  query: (text) => text,
};

/** The arguments that say the same as a field. */
const argumentsOf = (field) => {
  const { flag, kind } = field.dataset;
  if (field.value === "") return [flag, "none"];
  if (kind === "pairs") return lines(field.value).flatMap((line) => [flag, quote(line)]);
  const text = kind === "time" ? KINDS.time(field.value) : kind === "list" || kind === "codes" ? words(field.value).join(",") : field.value;
  // A value that begins with a dash would be taken for a flag.
  if (text.startsWith("-")) return [`${flag}=${quote(text)}`];
  return flag ? [flag, quote(text)] : [quote(text)];
};

const filled = (form) => [...form.elements].filter((field) => field.name && (form.dataset.method ? field.value !== field.defaultValue
  : field.value.trim() !== "" && (field.type !== "checkbox" || field.checked) && (field.dataset.kind !== "time" || !Number.isNaN(Date.parse(field.value)))));

/** The query and the body of the call. */
const request = (form) => {
  const body = {}, query = new URLSearchParams();
  for (const field of filled(form)) {
    const { kind } = field.dataset;
    // Only a change empties a field.
    const value = field.value === "" ? null : (KINDS[kind] ?? String)(field.value);
    if (kind === "query") {
      query.set(field.name, value);
      continue;
    }
    const path = field.name.split(".");
    const last = path.pop();
    let place = body;
    for (const part of path) place = place[part] ??= {};
    if (field.type === "checkbox") (place[last] ??= []).push(value);
    else place[last] = value;
  }
  return { body, path: form.dataset.make + (query.size > 0 ? `?${query}` : "") };
};

const commandOf = (form) => {
  const fields = filled(form);
  const plain = fields.filter((field) => field.type !== "checkbox").flatMap(argumentsOf);
  const checked = fields.filter((field) => field.type === "checkbox");
  if (checked.length > 0) plain.push(checked[0].dataset.flag, checked.map((field) => field.value).join(","));
  return [form.dataset.command, ...plain].join(" ");
};

const show = (form) => {
  const place = (name) => form.querySelector(`[data-shows="${name}"]`);
  const { body, path } = request(form);
  if (place("cli")) place("cli").textContent = commandOf(form);
  if (place("curl")) place("curl").textContent = `curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d ${quote(jsonOf(body))} ${quote(location.origin + path)}`;
};

const problem = (form, text) => {
  const place = form.querySelector('[data-shows="problem"]');
  place.hidden = text === "";
  place.textContent = text;
};

const sentence = async (response) => {
  const value = await response.json().catch(() => ({}));
  return [value.detail ?? `status ${response.status}`, value.hint].filter(Boolean).join(". ");
};

/** The next times of a schedule, as the server computes them. */
let previewTimer;
const preview = (form) => {
  clearTimeout(previewTimer);
  previewTimer = setTimeout(async () => {
    const { body } = request(form);
    const place = form.querySelector('[data-shows="preview"]');
    const named = ["cron", "tz", "every", "at"].filter((name) => body[name]);
    if (!named.some((name) => name !== "tz")) { place.replaceChildren(); return; }
    const response = await fetch(`${form.dataset.preview}?${new URLSearchParams(named.map((name) => [name, body[name]]))}`);
    if (!response.ok) { place.textContent = await sentence(response); return; }
    const { problem: wrong, description, next } = await response.json();
    if (wrong) { place.textContent = wrong; return; }
    const heading = document.createElement("p");
    heading.textContent = `${description}. The next times:`;
    const list = document.createElement("ol");
    for (const at of next) {
      const time = Object.assign(document.createElement("time"), { dateTime: at.at, textContent: at.at });
      time.dataset.show = "clock";
      const item = document.createElement("li");
      item.append(time, at.zoned ? ` · ${at.zoned}` : "");
      list.append(item);
    }
    place.replaceChildren(heading, list);
    showTimes(place);
  }, 150);
};

const watched = new WeakSet();
/** A section that was swapped has lost what this script shows in it. */
const watch = (form) => {
  const update = () => {
    show(form);
    if (form.dataset.preview) preview(form);
  };
  if (!watched.has(form)) form.addEventListener("input", update);
  watched.add(form);
  update();
};

document.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-make]");
  if (!form) return;
  event.preventDefault();
  const { body, path } = request(form);
  event.submitter.disabled = true;
  try {
    const done = commandOf(form);
    const response = await fetch(path, { method: form.dataset.method ?? "POST", headers: { "Queuectl-Session-Token": token, "Content-Type": "application/json" }, body: JSON.stringify(body) });
    if (!response.ok) { problem(form, await sentence(response)); return; }
    const made = await response.json();
    problem(form, "");
    if (!form.dataset.then) toast(`Done: ${done}`);
    else location.assign(form.dataset.then.replace(/\{(\w+)\}/, (_, name) => encodeURIComponent(made[name])));
  } catch {
    problem(form, "The server cannot be reached.");
  } finally {
    event.submitter.disabled = false;
  }
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copies]");
  if (!button) return;
  await navigator.clipboard.writeText(button.previousElementSibling.textContent).then(() => toast("Copied."), () => toast("The browser does not allow copying here.", true));
});

// A value is checked while it is typed; the server says what is wrong with it.
document.addEventListener("input", async (event) => {
  const field = event.target.closest("[data-check]");
  if (!field) return;
  const typed = field.value;
  const response = await fetch(`${base}${field.dataset.check}?value=${encodeURIComponent(typed)}`).catch(() => undefined);
  if (!response || field.value !== typed) return;
  const { problem: wrong } = response.ok ? await response.json() : {};
  const note = document.getElementById(field.getAttribute("aria-describedby"));
  note.textContent = wrong ?? "";
  field.setAttribute("aria-invalid", String(Boolean(wrong)));
  const button = field.form.querySelector("button[type=submit]");
  button.disabled = Boolean(wrong);
  button.dataset.cli = `queuectl config set ${field.dataset.key} ${quote(typed)}`;
});

const watchAll = () => document.querySelectorAll("form[data-make]").forEach(watch);
document.addEventListener("swapped", watchAll);
watchAll();
