// The palette and the list of keys.
import { ask, base, buttons, el } from "./page.js";
import { call } from "./act.js";

const suggest = (field, prefix) => call("GET", `${base}/api/v1/suggest?field=${field}&prefix=${encodeURIComponent(prefix)}`).catch(() => []);
const link = (name, path) => ({ name, href: base + path });
const pages = () => [...document.querySelectorAll("#rail nav a:not(.brand)")].map((one) => ({ name: one.querySelector(".name").textContent, href: one.href }));
/** What the page itself offers: its buttons outside of rows, and switches of the frame. */
const actions = () => [...document.querySelectorAll("main section:not(#jobs) .actions > button[data-act], #theme, #help")].map((button) => ({ name: button.ariaLabel ?? button.textContent, run: () => button.click() }));

export const openPalette = () => {
  const input = el("input", { type: "search", placeholder: "a page, a job by number or id, a queue, an action", autocomplete: "off", ariaLabel: "Go to", role: "combobox", ariaExpanded: "true" });
  input.setAttribute("aria-controls", "palette-list");
  const list = el("ul", { id: "palette-list", role: "listbox", ariaLabel: "Places" });
  const fixed = [...pages(), ...actions()];
  let chosen = 0, found = [], queues = [], ids = [];
  const entries = () => {
    const typed = input.value.trim(), small = typed.toLowerCase();
    const named = fixed.filter((entry) => entry.name.toLowerCase().includes(small));
    if (!typed) return named;
    const some = (label, path, names) => names.map((name) => link(`${label} ${name}`, `${path}/${encodeURIComponent(name)}`));
    return [...named, ...some("Queue", "/queues", queues.slice(0, 5)),
      ...some("Job", "/jobs", [...new Set([...ids.slice(0, 5), typed])]),
      link(`Jobs whose command has “${typed}”`, `/jobs?like=${encodeURIComponent(`*${typed}*`)}`)];
  };
  const show = () => {
    found = entries();
    chosen = Math.min(Math.max(chosen, 0), found.length - 1);
    list.replaceChildren(...found.map((entry, at) => {
      const item = el("a", { href: entry.href ?? "#", id: `place-${at}`, role: "option", ariaSelected: String(at === chosen), tabIndex: -1 }, entry.name);
      item.addEventListener("click", (event) => {
        if (!entry.run) return;
        event.preventDefault();
        input.closest("dialog").close();
        entry.run();
      });
      return el("li", { role: "presentation" }, item);
    }));
    input.setAttribute("aria-activedescendant", `place-${chosen}`);
    list.children[chosen]?.scrollIntoView({ block: "nearest" });
  };
  let latest = 0;
  input.addEventListener("input", async () => {
    chosen = 0;
    show();
    const typed = input.value.trim(), own = ++latest;
    const found = await Promise.all(["queue", "id"].map((field) => suggest(field, typed)));
    if (own !== latest) return;
    [queues, ids] = found;
    show();
  });
  input.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { chosen += step; show(); event.preventDefault(); }
    if (event.key === "Enter") { event.preventDefault(); list.children[chosen]?.firstElementChild.click(); }
  });
  show();
  ask("Go to", input, list);
  input.focus();
};

export const openHelp = () => {
  ask("Keys", document.getElementById("keys").content.cloneNode(true), buttons(el("button", { value: "close" }, "Close")));
};
