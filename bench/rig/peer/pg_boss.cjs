// Drains jobs with pg-boss and prints the seconds from the first start to the last end:
// node pg_boss.cjs ADDRESS JOBS SLOTS COMMAND   (COMMAND: true, or none for a task that does nothing)
const PgBoss = require("pg-boss");
const { execute } = require("./task.cjs");

const [connectionString, jobs, slots, command] = process.argv.slice(2);
// Jobs are taken and completed in batches, its fastest way.
const BATCH = 250;

async function main() {
  const boss = new PgBoss({ connectionString, supervise: false, schedule: false });
  await boss.start();
  await boss.createQueue("task");
  const all = Array.from({ length: Number(jobs) }, (_, n) => ({ name: "task", data: { n } }));
  while (all.length > 0) await boss.insert(all.splice(0, 5000));
  const began = process.hrtime.bigint();
  let done = 0;
  while (done < Number(jobs)) {
    const batch = await boss.fetch("task", { batchSize: BATCH });
    const waiting = [...batch];
    const lane = async () => {
      while (waiting.pop()) await execute(command);
    };
    await Promise.all(Array.from({ length: Number(slots) }, lane));
    await boss.complete("task", batch.map((job) => job.id));
    done += batch.length;
  }
  console.log(Number(process.hrtime.bigint() - began) / 1e9);
  await boss.stop({ graceful: false });
}

main().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
