// Drains jobs with graphile-worker and prints the seconds from the first start to the last end:
// node graphile_worker.cjs ADDRESS JOBS SLOTS COMMAND   (COMMAND: true, or none for a task that does nothing)
const { Logger, run, runMigrations } = require("graphile-worker");
const { Pool } = require("pg");
const { execute } = require("./task.cjs");

const [connectionString, jobs, slots, command] = process.argv.slice(2);

async function main() {
  const logger = new Logger(() => () => {});
  const pool = new Pool({ connectionString });
  await runMigrations({ pgPool: pool, logger });
  const add = "select count(*) from generate_series(1, $1) n, graphile_worker.add_job('task', json_build_object('n', n))";
  await pool.query(add, [jobs]);
  let began;
  let done = 0;
  let finish;
  const finished = new Promise((resolve) => (finish = resolve));
  const task = async () => {
    began ??= process.hrtime.bigint();
    await execute(command);
    done += 1;
    if (done === Number(jobs)) finish(process.hrtime.bigint());
  };
  // Jobs are taken in batches, its fastest way.
  const preset = { worker: { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } };
  const runner = await run({ pgPool: pool, logger, concurrency: Number(slots), taskList: { task }, preset });
  const ended = await finished;
  console.log(Number(ended - began) / 1e9);
  await runner.stop();
  await pool.end();
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
