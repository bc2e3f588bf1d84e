// Changes: buttons that call the API with the session's token, and the progress of actions on many jobs.
import { ask, base, buttons, el, toast } from "./page.js";

const token = document.querySelector('meta[name="session-token"]')?.content ?? "";

/** Calls the API; throws the sentence of the problem. */
export const call = async (method, path, value) => {
  const body = value && JSON.stringify(value);
  const headers = { "Queuectl-Session-Token": token, ...(body && { "Content-Type": "application/json" }) };
  const response = await fetch(path, { method, headers, body }).catch(() => {
    throw new Error("The server cannot be reached.");
  });
  const text = await response.text();
  const answer = text && JSON.parse(text);
  if (!response.ok) throw new Error([answer.detail ?? `status ${response.status}`, answer.hint].filter(Boolean).join(". "));
  return answer;
};

/** Asks until it is over; `each` gets the answers before that. */
export const poll = async (path, isOver, each) => {
  for (;;) {
    const now = await call("GET", path);
    if (isOver(now)) return now;
    each(now);
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
};

export const grouped = (number) => number.toLocaleString("en");

/** A button that does something. */
export const button = (label, perform, isFinal) => {
  const made = el("button", { type: "button", className: isFinal ? "danger" : "" }, label);
  made.addEventListener("click", perform);
  return made;
};

/** Asks before a change; a number has to be typed before what cannot be undone. */
export const confirm = async (question, verb, cli, typed, isFinal) => {
  const yes = el("button", { value: "yes", className: isFinal ? "danger" : "", disabled: Boolean(typed) }, verb);
  const no = el("button", { value: "no" }, "No");
  const copy = button("copy", () => {});
  copy.dataset.copy = cli;
  const content = cli ? [el("p", {}, "The same on the command line:"), el("p", { className: "cli" }, el("code", {}, cli), copy)] : [];
  const input = el("input", { autocomplete: "off", inputMode: "numeric" });
  input.addEventListener("input", () => { yes.disabled = input.value.replaceAll(",", "").trim() !== typed; });
  if (typed) content.push(el("label", {}, el("span", {}, `Type ${typed} to confirm`), input));
  const closed = ask(question, ...content, buttons(no, yes));
  (typed ? input : no).focus();
  return (await closed) === "yes";
};

/** Follows an action until it has ended. */
export const follow = async (action) => {
  const path = `${base}/api/v1/actions/${encodeURIComponent(action.id)}`;
  const stop = button("stop", () => call("DELETE", path).catch((error) => toast(error.message, true)));
  const done = ({ verb, done, count }) => `${verb}: ${grouped(done)} of ${grouped(count)}`;
  const end = await poll(path, ({ state }) => state !== "running", (now) => toast(`${done(now)} `, false, stop));
  const skipped = end.skipped > 0 ? `, ${end.skipped} left as they were` : "";
  toast(`${done(end)}${skipped}${end.error ? `. ${end.error}` : end.state === "stopped" ? ", stopped" : ""}`, Boolean(end.error));
};

export const perform = async (button) => {
  const { act, path, body, ask: question, cli, then, type } = button.dataset;
  if (question && !(await confirm(question, button.textContent, cli, type, button.classList.contains("danger")))) return;
  button.disabled = true;
  try {
    const value = await call(act, path, body && JSON.parse(body));
    if (then) location.assign(then);
    else if (value.verb) await follow(value);
    else toast(cli ? `Done: ${cli}` : "Done.");
  } catch (error) {
    toast(error.message, true);
  } finally {
    button.disabled = false;
  }
};
