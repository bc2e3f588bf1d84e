// The choice of jobs in a list, by mouse and by keys, and what is done with the chosen ones.
import { ask, base, buttons, el, keys, program, quote, setText, toast } from "./page.js";
import { button, call, confirm, follow, grouped, poll } from "./act.js";

const table = document.getElementById("jobs");
const chosen = new Set();
let isAllMatching = false, lastBox;
const bar = document.getElementById("chosen");

const boxes = () => [...table.querySelectorAll("tbody input[data-choose]")];
const count = () => document.getElementById("count")?.dataset ?? {};
const matching = () => Number(count().count ?? 0);
const jobs = (number) => `${grouped(number)} ${number === 1 ? "job" : "jobs"}`;
/** The states that a verb is for, if the filter names none. */
const statesOf = (verb) => bar.querySelector(`[data-do=${verb}]`).dataset.states;
const filter = (verb) => (count().filter ? JSON.parse(count().filter) : { state: statesOf(verb) });
const commandOf = (verb, { filter, ids }) => {
  // All that match may have been chosen one by one.
  const isWhole = ids?.length > 1 && ids.length === matching() && count().exact === "true";
  if (filter || isWhole) return `${program} ${verb} ${count().flags || `--state ${statesOf(verb)}`}`;
  return ids.length <= 20 ? `${program} ${verb} ${ids.map(quote).join(" ")}` : "";
};

const run = async (verb, targets, isFinal, more = {}, flags = "") => {
  const path = `${base}/api/v1/actions`, action = { verb, ...targets, ...more };
  try {
    const preview = await call("POST", path, { ...action, dry_run: true });
    const states = Object.entries(preview.by_state).map(([state, number]) => `${state} ${grouped(number)}`).join(" · ");
    if (preview.count === 0) return toast(`None of them can be changed by ${verb}.`, true);
    const question = `${verb[0].toUpperCase()}${verb.slice(1)} ${preview.exact ? "" : "at least "}${jobs(preview.count)}? ${states}`;
    const typed = isFinal || preview.count > 100 ? String(preview.count) : undefined;
    const command = commandOf(verb, targets);
    if (!(await confirm(question, verb, command && command + flags, typed, isFinal))) return;
    const started = await call("POST", path, { ...action, ...(isFinal && { expect: preview.count }) });
    none();
    await follow(started);
  } catch (error) {
    toast(error.message, true);
  }
};
/** The box of the row that has the focus. */
const focused = () => document.activeElement?.closest("tr")?.querySelector("input[data-choose]");
/** The chosen jobs; without any, the one of the row that has the focus. */
const targets = (verb) => {
  if (isAllMatching) return { filter: filter(verb) };
  const ids = chosen.size ? [...chosen] : [focused()?.dataset.choose ?? []].flat();
  return ids.length ? { ids } : undefined;
};
const act = (verb, isFinal = false) => {
  const wanted = targets(verb);
  if (wanted) run(verb, wanted, isFinal);
};

/** Asks for the changes that all of them get. */
const edit = async () => {
  const wanted = targets("edit"), fields = document.getElementById("edit-many");
  if (!wanted || !fields) return;
  const { commandOf, request, show } = await import("./forms.js");
  const closed = ask("Change what of these jobs? An empty field stays as it is.", fields.content.cloneNode(true),
    buttons(el("button", { value: "yes", className: "primary" }, "count them"), el("button", { value: "no" }, "No")));
  const form = document.querySelector("dialog form");
  form.dataset.command = `${program} edit …`;
  form.addEventListener("input", () => show(form));
  form.elements[0].focus();
  if ((await closed) === "yes") run("edit", wanted, false, { edit: request(form).body }, commandOf(form, ""));
};

/** Retries one job and watches it; the others follow if the reader says so. */
const canary = async () => {
  const all = targets("retry"), [first, ...others] = chosen;
  const path = `/jobs/${encodeURIComponent(first)}`;
  const link = ({ state }) => el("a", { href: base + path }, state);
  const isOver = ({ state }) => ["completed", "dead", "cancelled", "failed"].includes(state);
  try {
    await call("POST", `${base}/api/v1${path}/retry`);
    const end = await poll(`${base}/api/v1${path}`, isOver, (now) => toast(`Job ${first}: `, false, link(now), " …"));
    const rest = button(isAllMatching ? "retry all others" : `retry the other ${jobs(others.length)}`, () => run("retry", isAllMatching ? all : { ids: others }));
    toast(`Job ${first}: `, end.state !== "completed", link(end), " ", ...(others.length || isAllMatching ? [rest] : []));
  } catch (error) {
    toast(error.message, true);
  }
};

const none = () => {
  chosen.clear();
  isAllMatching = false;
  show();
};
const all = () => {
  isAllMatching = matching() > 0;
  if (isAllMatching) boxes().forEach((box) => chosen.add(box.dataset.choose));
  show();
};
const show = () => {
  const rows = boxes(), head = table.querySelector("thead input[data-choose]");
  for (const box of rows) {
    box.checked = isAllMatching || chosen.has(box.dataset.choose);
    box.closest("tr").classList.toggle("chosen", box.checked);
  }
  const on = rows.filter((box) => box.checked).length;
  if (head) Object.assign(head, { checked: on > 0 && on === rows.length, indeterminate: on > 0 && on < rows.length });
  const number = isAllMatching ? matching() : chosen.size;
  const least = count().exact === "true" ? "" : "at least ";
  const part = (name) => bar.querySelector(`[data-do=${name}]`);
  bar.classList.toggle("on", number > 0);
  setText(bar.firstElementChild, isAllMatching ? `all ${least}${grouped(number)} that match are chosen` : `${grouped(number)} of ${least}${grouped(matching())} chosen`);
  setText(part("all"), `choose all ${grouped(matching())} that match`);
  part("all").hidden = isAllMatching || number >= matching();
  part("canary").hidden = number < 2;
};
const setAll = (some, isOn) => {
  for (const { dataset: { choose: id } } of some) chosen[isOn ? "add" : "delete"](id);
  show();
};
const choose = (box, isRange) => {
  isAllMatching = false;
  const rows = boxes();
  let changed = [box];
  if (isRange && rows.includes(lastBox)) {
    const [from, to] = [rows.indexOf(lastBox), rows.indexOf(box)].sort((a, b) => a - b);
    changed = rows.slice(from, to + 1);
  }
  lastBox = box;
  setAll(changed, box.checked);
};

if (table?.querySelector("input[data-choose]") || document.querySelector("#count")) {
  const deeds = { all, none, canary, edit, retry: () => act("retry"), cancel: () => act("cancel"), remove: () => act("remove", true) };
  bar.addEventListener("click", ({ target }) => deeds[target.dataset.do]?.());
  table.addEventListener("click", (event) => {
    const box = event.target.closest("input[data-choose]");
    if (!box) return;
    if (!box.closest("thead")) return choose(box, event.shiftKey);
    isAllMatching = false;
    setAll(boxes(), box.checked);
  });
  const mark = (event) => {
    const box = focused();
    if (!box) return;
    box.checked = !box.checked;
    choose(box, event.shiftKey || event.key === "X");
  };
  Object.assign(keys, { x: mark, X: mark, "*": all, Delete: deeds.remove });
  document.addEventListener("swapped", show);
}
