// The choice of jobs in a list, by mouse and by keys, and what is done with the chosen ones.
import { base, el, keys, quote, toast } from "./page.js";
import { call, confirm, follow } from "./act.js";

const table = document.getElementById("jobs");
const chosen = new Set();
let isAllMatching = false, lastBox;
const bar = el("div", { id: "chosen", hidden: true });
bar.setAttribute("role", "region");
bar.setAttribute("aria-label", "Chosen jobs");

const boxes = () => [...table.querySelectorAll("tbody input[data-choose]")];
const count = () => document.getElementById("count")?.dataset ?? {};
const matching = () => Number(count().count ?? 0);
const grouped = (number) => number.toLocaleString("en");
const jobs = (number) => `${grouped(number)} ${number === 1 ? "job" : "jobs"}`;
/** The states that a verb is for, if the filter names none. */
const STATES = { retry: "failed,dead,cancelled", cancel: "pending,processing,failed", remove: "pending,completed,failed,dead,cancelled" };
const filter = (verb) => {
  const found = Object.fromEntries([...new URLSearchParams(location.search)].filter(([name, value]) => value !== "" && !["order", "after", "limit", "cols", "tz"].includes(name)));
  if ("exit_code" in found) found.exit_code = Number(found.exit_code);
  return Object.keys(found).length ? found : { state: STATES[verb] };
};
const commandOf = (verb, targets) => {
  if (targets.filter) return count().flags ? `queuectl ${verb} ${count().flags}` : `queuectl ${verb} --state ${STATES[verb]}`;
  return targets.ids.length <= 20 ? `queuectl ${verb} ${targets.ids.map(quote).join(" ")}` : "";
};

const run = async (verb, targets, isFinal) => {
  const path = `${base}/api/v1/actions`;
  try {
    const preview = await call("POST", path, { verb, ...targets, dry_run: true });
    const states = Object.entries(preview.by_state).map(([state, number]) => `${state} ${grouped(number)}`).join(" · ");
    if (preview.count === 0) return toast(`None of them can be changed by ${verb}.`, true);
    const question = `${verb[0].toUpperCase()}${verb.slice(1)} ${preview.exact ? "" : "at least "}${jobs(preview.count)}? ${states}`;
    const typed = isFinal || preview.count > 100 ? String(preview.count) : undefined;
    if (!(await confirm(question, verb, commandOf(verb, targets), typed, isFinal))) return;
    const action = await call("POST", path, { verb, ...targets, ...(isFinal ? { expect: preview.count } : {}) });
    none();
    await follow(action);
  } catch (error) {
    toast(error.message, true);
  }
};
/** The chosen jobs; without any, the one of the row that has the focus. */
const targets = (verb) => {
  if (isAllMatching) return { filter: filter(verb) };
  const row = document.activeElement?.closest("tr")?.querySelector("input[data-choose]");
  const ids = chosen.size ? [...chosen] : row ? [row.dataset.choose] : [];
  return ids.length ? { ids } : undefined;
};
const act = (verb, isFinal = false) => {
  const wanted = targets(verb);
  if (wanted) run(verb, wanted, isFinal);
};

/** Retries one job and watches it; the others follow if the reader says so. */
const canary = async () => {
  const all = targets("retry"), [first, ...others] = chosen;
  const path = `${base}/api/v1/jobs/${encodeURIComponent(first)}`;
  try {
    await call("POST", `${path}/retry`);
    for (;;) {
      const job = await call("GET", path);
      const link = el("a", { href: `${base}/jobs/${encodeURIComponent(first)}` }, job.state);
      const rest = button(isAllMatching ? "retry all others" : `retry the other ${jobs(others.length)}`, () => run("retry", isAllMatching ? all : { ids: others }));
      if (["completed", "dead", "cancelled", "failed"].includes(job.state)) return toast(`Job ${first}: `, job.state !== "completed", link, " ", ...(others.length || isAllMatching ? [rest] : []));
      toast(`Job ${first}: `, false, link, " …");
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
  } catch (error) {
    toast(error.message, true);
  }
};

const button = (label, perform, isFinal) => {
  const made = el("button", { type: "button", className: isFinal ? "danger" : "" }, label);
  made.addEventListener("click", perform);
  return made;
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
  for (const box of boxes()) {
    box.checked = isAllMatching || chosen.has(box.dataset.choose);
    box.closest("tr").classList.toggle("chosen", box.checked);
  }
  const head = table.querySelector("thead input[data-choose]");
  if (head) {
    head.checked = boxes().length > 0 && boxes().every((box) => box.checked);
    head.indeterminate = !head.checked && boxes().some((box) => box.checked);
  }
  const number = isAllMatching ? matching() : chosen.size;
  bar.hidden = number === 0;
  const least = count().exact === "true" ? "" : "at least ";
  const text = isAllMatching ? `all ${least}${grouped(number)} that match are chosen` : `${grouped(number)} of ${least}${grouped(matching())} chosen`;
  if (bar.hidden || bar.dataset.text === text) return;
  bar.dataset.text = text;
  const more = !isAllMatching && number < matching() ? [button(`choose all ${grouped(matching())} that match`, all)] : [];
  bar.replaceChildren(el("span", { role: "status" }, text), ...more, el("span", { className: "apart" }), button("retry", () => act("retry")),
    ...(number > 1 ? [button("retry one first", canary)] : []), button("cancel", () => act("cancel")), button("remove", () => act("remove", true), true), button("choose none", none));
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
  for (const one of changed) {
    if (box.checked) chosen.add(one.dataset.choose);
    else chosen.delete(one.dataset.choose);
  }
  show();
};

if (table?.querySelector("input[data-choose]") || document.querySelector("#count")) {
  document.getElementById("main").append(bar);
  table.addEventListener("click", (event) => {
    const box = event.target.closest("input[data-choose]");
    if (!box) return;
    if (!box.closest("thead")) return choose(box, event.shiftKey);
    isAllMatching = false;
    for (const one of boxes()) {
      if (box.checked) chosen.add(one.dataset.choose);
      else chosen.delete(one.dataset.choose);
    }
    show();
  });
  const mark = (event) => {
    const box = document.activeElement?.closest("tr")?.querySelector("input[data-choose]");
    if (!box) return;
    box.checked = !box.checked;
    choose(box, event.shiftKey || event.key === "X");
  };
  Object.assign(keys, { x: mark, X: mark, "*": all, u: none, r: () => act("retry"), c: () => act("cancel"), Delete: () => act("remove", true) });
  document.addEventListener("swapped", show);
}
