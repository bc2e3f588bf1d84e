// Forms: the body of the call, the command line and the curl call come from the same fields.
import { base, el, jsonOf, quote, showTimes, toast } from "./page.js";
import { call } from "./act.js";

const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
const words = (text) => text.split(/[\s,]+/).filter(Boolean);
const pairs = (parts) => parts.map((part) => part.split(/=(.*)/s)).map(([name, value = ""]) => [name, value]);
const numeric = (text) => (/^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text);

/** How the text of a field becomes JSON. What is not as it should be is sent as it is: the server says what is wrong. */
const KINDS = {
  number: numeric,
  list: words,
  codes: (text) => words(text).map(numeric),
  time: (text) => (Number.isNaN(Date.parse(text)) ? text : new Date(text).toISOString()),
  json: (text) => {
    try { return JSON.parse(text); } catch { return text; }
  },
  pairs: (text) => Object.fromEntries(pairs(lines(text))),
  unset: (text) => Object.fromEntries(words(text).map((name) => [name, null])),
  limits: (text) => Object.fromEntries(pairs(words(text)).map(([name, value]) => [name, numeric(value)])),
};

/** The arguments that say the same as a field. */
const argumentsOf = ({ value, dataset: { flag, kind, none } }) => {
  if (value === "") return [none ?? `${flag} none`];
  const several = { pairs: lines, unset: words }[kind];
  if (several) return several(value).map((one) => `${flag} ${quote(one)}`);
  const text = kind === "time" ? KINDS.time(value) : kind === "list" || kind === "codes" ? words(value).join(",") : value;
  // A value that begins with a dash would be taken for a flag.
  if (flag && text.startsWith("-")) return [`${flag}=${quote(text)}`];
  return [`${flag} ${quote(text)}`.trim()];
};

/** What a field was when the page came. */
const before = (field) => (field.options ? [...field.options].find((one) => one.defaultSelected)?.value : field.defaultValue);
/** The fields that count: in a form that changes something the changed ones, otherwise those with a value. */
const filled = (form) => [...form.elements].filter((field) => field.name && (form.dataset.method ? field.value !== before(field)
  : field.value.trim() !== "" && (field.type !== "checkbox" || field.checked)));

/** The query and the body of the call. */
export const request = (form) => {
  const body = {}, query = new URLSearchParams();
  for (const { name, value: text, type, dataset: { kind } } of filled(form)) {
    // Only a change empties a field.
    const value = text === "" ? null : (KINDS[kind] ?? String)(text);
    const path = name.split("."), last = path.pop();
    const place = path.reduce((inner, part) => (inner[part] ??= {}), body);
    if (kind === "query") query.set(name, text);
    else if (type === "checkbox") (place[last] ??= []).push(value);
    else if (kind === "pairs" || kind === "unset") place[last] = { ...place[last], ...value };
    else place[last] = value;
  }
  return { body, path: form.dataset.make + (query.size > 0 ? `?${query}` : "") };
};

export const commandOf = (form, command = form.dataset.command) => {
  const checked = Object.groupBy(filled(form), (field) => field.type === "checkbox");
  const boxes = checked.true ?? [], plain = (checked.false ?? []).flatMap(argumentsOf);
  if (boxes.length > 0) plain.push(boxes[0].dataset.flag, boxes.map((box) => box.value).join(","));
  return [command, ...plain].join(" ");
};

const place = (form, name) => form.querySelector(`[data-shows="${name}"]`);
/** Shows the command line and the call that do the same. */
export const show = (form) => {
  const { body, path } = request(form), [cli, curl] = [place(form, "cli"), place(form, "curl")];
  const method = form.dataset.method ? `-X ${form.dataset.method} ` : "";
  if (cli) cli.textContent = commandOf(form);
  if (curl) curl.textContent = `curl ${method}-H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d ${quote(jsonOf(body))} ${quote(location.origin + path)}`;
};

const problem = (form, text) => {
  const shown = place(form, "problem");
  if (!shown) return text && toast(text, true);
  shown.textContent = text;
  shown.hidden = !text;
};

/** The next times of a schedule, as the server computes them. */
let previewTimer;
const preview = (form) => {
  clearTimeout(previewTimer);
  previewTimer = setTimeout(async () => {
    const { body } = request(form), shown = place(form, "preview");
    const named = ["cron", "tz", "every", "at"].filter((name) => body[name]);
    if (!named.some((name) => name !== "tz")) return shown.replaceChildren();
    try {
      const { problem: wrong, description, next } = await call("GET", `${form.dataset.preview}?${new URLSearchParams(named.map((name) => [name, body[name]]))}`);
      if (wrong) throw new Error(wrong);
      const times = next.map(({ at, zoned }) => el("li", {}, el("time", { dateTime: at }, at), zoned ? ` · ${zoned}` : ""));
      shown.replaceChildren(el("p", {}, `${description}. The next times:`), el("ol", {}, ...times));
      showTimes(shown);
    } catch (error) {
      shown.textContent = error.message;
    }
  }, 150);
};

const update = (form) => {
  show(form);
  if (form.dataset.preview) preview(form);
};
document.addEventListener("input", ({ target: { form } }) => form?.dataset.make && update(form));
// A section that was swapped has lost what this script shows in it.
const updateAll = () => document.querySelectorAll("form[data-make]").forEach(update);
document.addEventListener("swapped", updateAll);
updateAll();

document.addEventListener("submit", async (event) => {
  const form = event.target, { submitter } = event;
  if (!form.dataset.make) return;
  event.preventDefault();
  const { body, path } = request(form), { by = form.dataset.method ?? "POST", to = path, wrap, then = form.dataset.then, command } = submitter.dataset;
  submitter.disabled = true;
  try {
    const done = commandOf(form, command);
    const made = await call(by, to, wrap ? { [wrap]: body } : body);
    problem(form, "");
    if (then) location.assign(then.replace(/\{(\w+)\}/, (_, name) => encodeURIComponent(made[name])));
    else toast(`Done: ${done}`);
  } catch (error) {
    problem(form, error.message);
  } finally {
    submitter.disabled = false;
  }
});

// A value is checked while it is typed; the server says what is wrong with it.
document.addEventListener("input", async ({ target: field }) => {
  if (!field.dataset.check) return;
  const typed = field.value;
  const { problem: wrong = "" } = await call("GET", `${base}${field.dataset.check}?value=${encodeURIComponent(typed)}`).catch(() => ({}));
  if (field.value !== typed) return;
  field.form.nextElementSibling.textContent = wrong;
  field.ariaInvalid = String(Boolean(wrong));
  field.form.querySelector("button[type=submit]").disabled = Boolean(wrong);
});
