// Changes: buttons and forms that call the API with the session's token, and the progress of actions on many jobs.
import { ask, base, el, toast } from "./page.js";

const token = document.querySelector('meta[name="session-token"]')?.content ?? "";

/** Calls the API; throws the sentence of the problem. */
export const call = async (method, path, body) => {
  const headers = { "Queuectl-Session-Token": token };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) }).catch(() => {
    throw new Error("The server cannot be reached.");
  });
  const text = await response.text();
  const value = text === "" ? undefined : JSON.parse(text);
  if (!response.ok) throw new Error([value?.detail ?? `status ${response.status}`, value?.hint].filter(Boolean).join(". "));
  return value;
};

const cliLine = (line) => {
  const copy = el("button", { type: "button", title: "Copy this command" }, "copy");
  copy.dataset.copy = line;
  return el("p", { className: "cli" }, el("code", {}, line), copy);
};

/** Asks before a change; a number has to be typed before what cannot be undone. */
export const confirm = async (question, verb, cli, typed, isFinal) => {
  const yes = el("button", { value: "yes", className: isFinal ? "danger" : "" }, verb);
  const input = typed ? el("input", { autocomplete: "off", inputMode: "numeric" }) : undefined;
  const content = [];
  if (cli) content.push(el("p", {}, "The same on the command line:"), cliLine(cli));
  if (input) {
    yes.disabled = true;
    input.addEventListener("input", () => { yes.disabled = input.value.replaceAll(",", "").trim() !== typed; });
    content.push(el("label", {}, el("span", {}, `Type ${typed} to confirm`), input));
  }
  const no = el("button", { value: "no" }, "No");
  // The first button answers the Enter key, so it is the harmless one.
  content.push(el("div", { className: "buttons" }, no, yes));
  const closed = ask(question, ...content);
  (input ?? no).focus();
  return (await closed) === "yes";
};

/** Follows an action until it has ended. */
export const follow = async (action) => {
  const path = `${base}/api/v1/actions/${encodeURIComponent(action.id)}`;
  const stop = el("button", { type: "button" }, "stop");
  stop.addEventListener("click", () => call("DELETE", path).catch((error) => toast(error.message, true)));
  for (let now = action; ; now = await call("GET", path)) {
    const done = `${now.verb}: ${now.done.toLocaleString("en")} of ${now.count.toLocaleString("en")}`;
    if (now.state !== "running") {
      const skipped = now.skipped > 0 ? `, ${now.skipped} left as they were` : "";
      toast(`${done}${skipped}${now.error ? `. ${now.error}` : now.state === "stopped" ? ", stopped" : ""}`, Boolean(now.error));
      return;
    }
    toast(`${done} `, false, stop);
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
};

export const perform = async (button, body = button.dataset.body ? JSON.parse(button.dataset.body) : undefined) => {
  const { act, path, ask: question, cli, then, type, open } = button.dataset;
  const isFinal = button.classList.contains("danger");
  if (question && !(await confirm(question, button.textContent, cli, type, isFinal))) return;
  button.disabled = true;
  try {
    const value = await call(act, path, body);
    if (then) location.assign(then);
    else if (open && value?.[open]) location.assign(`${base}/jobs/${encodeURIComponent(value[open])}`);
    else if (value?.verb && value.count !== undefined) await follow(value);
    else toast(cli ? `Done: ${cli}` : "Done.");
  } catch (error) {
    toast(error.message, true);
  } finally {
    button.disabled = false;
  }
};

/** The fields of a form that differ from what they were. */
const fields = (form) => {
  const body = {};
  for (const field of form.elements) {
    if (!field.name || field.value === field.defaultValue) continue;
    body[field.name] = "number" in field.dataset ? Number(field.value) : "list" in field.dataset ? field.value.split(/[\s,]+/).filter(Boolean) : field.value;
  }
  return body;
};

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-form]");
  if (!form || !event.submitter?.dataset.act) return;
  event.preventDefault();
  const body = fields(form);
  const { wrap } = event.submitter.dataset;
  perform(event.submitter, wrap ? { [wrap]: body } : body);
});
