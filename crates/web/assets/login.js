// Sends the code in the fragment to the server, which answers with a cookie. The fragment is in no log and no Referer.
const message = document.getElementById("message");
const base = document.body.dataset.base;
const code = location.hash.slice(1);
history.replaceState(null, "", location.pathname);

const logIn = async () => {
  if (code === "") {
    message.textContent = "The link has no code. `queuectl dashboard link` prints a new one.";
    return;
  }
  const response = await fetch(`${base}/api/v1/session`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ code }),
  });
  if (response.ok) {
    location.replace(`${base}/`);
    return;
  }
  const problem = await response.json();
  message.textContent = `${problem.detail}. \`queuectl dashboard link\` prints a new link.`;
};

logIn().catch(() => {
  message.textContent = "The server cannot be reached.";
});
