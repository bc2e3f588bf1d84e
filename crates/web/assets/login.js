// Sends the code in the fragment to the server, which answers with a cookie. The fragment is in no log and no Referer.
const { base } = document.body.dataset;
const code = location.hash.slice(1);
history.replaceState(null, "", location.pathname);

const logIn = async () => {
  if (code === "") return "The link has no code. `queuectl dashboard link` prints a new one.";
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(`${base}/api/v1/session`, { method: "POST", headers, body: JSON.stringify({ code }) });
  if (!response.ok) return `${(await response.json()).detail}. \`queuectl dashboard link\` prints a new link.`;
  location.replace(`${base}/`);
  return "";
};

logIn().catch(() => "The server cannot be reached.").then((message) => {
  document.getElementById("message").textContent = message;
});
