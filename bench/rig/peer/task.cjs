// What both peers do for a job: start a program and wait for it, or nothing if it is `none`.
const { spawn } = require("node:child_process");

exports.execute = (command) =>
  new Promise((resolve, reject) => {
    if (command === "none") return resolve();
    const child = spawn(command, { stdio: "ignore" });
    child.on("error", reject);
    child.on("exit", (code) => (code === 0 ? resolve() : reject(new Error(`exit code ${code}`))));
  });
