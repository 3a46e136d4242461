// BullMQ under the workload: the same as ada_program.py, with the same arguments and announcements.
// `node bullmq_program.js REDIS_URL put COUNT CALLERS PAGE | flow COUNT RATE | work FILE wait|now`

const fs = require("node:fs");
const { setTimeout: sleep } = require("node:timers/promises");
const { Queue, Worker } = require("bullmq");
const Redis = require("ioredis");

const TUBE = "bench", GO = "bench:go", CONCURRENCY = 100, BODY_LENGTH = 200;
const TEXT = "x".repeat(BODY_LENGTH + 2 - JSON.stringify({ number: 0, put: 0, text: "" }).length);
const [url, what, ...args] = process.argv.slice(2);
const connect = () => new Redis(url, { maxRetriesPerRequest: null });
const announce = (facts) => new Promise((end) => process.stdout.write(`ready ${JSON.stringify(facts)}\n`, end));
const nanoseconds = () => Number(process.hrtime.bigint());
const cpuSeconds = () => { const { user, system } = process.cpuUsage(); return (user + system) / 1e6; };

// BullMQ writes `data` as JSON and parses it before it calls the handler.
function data(number) {
  const put = nanoseconds();
  return { number, put, text: TEXT.slice(String(number).length + String(put).length) };
}

async function put(count, callers, page) {
  const queue = new Queue(TUBE, { connection: connect() });
  await queue.waitUntilReady();
  let next = 0;
  async function putPages() {
    while (next < count) {
      const start = next;
      next += page;
      if (page === 1) await queue.add("job", data(start));
      else {
        const numbers = Array.from({ length: Math.min(page, count - start) }, (_, n) => start + n);
        await queue.addBulk(numbers.map((number) => ({ name: "job", data: data(number) })));
      }
    }
  }
  const began = performance.now(), before = cpuSeconds();
  await Promise.all(Array.from({ length: callers }, putPages));
  announce({ seconds: (performance.now() - began) / 1000, cpu: cpuSeconds() - before });
}

async function flow(count, rate) {
  const queue = new Queue(TUBE, { connection: connect() });
  await queue.waitUntilReady();
  const began = performance.now(), puts = [];
  for (let number = 0; number < count; number++) {
    puts.push(queue.add("job", data(number)));
    await sleep(Math.max(0, began + ((number + 1) * 1000) / rate - performance.now()));
  }
  await Promise.all(puts);
  announce({ put: count });
}

async function work(file, when) {
  const lines = fs.openSync(file, "a"), latencies = [];
  async function handle(job) {
    const now = nanoseconds();
    latencies.push((now - job.data.put) / 1e6);
    fs.writeSync(lines, `${job.data.number}\n`);
  }
  const options = { connection: connect(), concurrency: CONCURRENCY, autorun: false, removeOnComplete: { count: 0 } };
  const worker = new Worker(TUBE, handle, options);
  await worker.waitUntilReady();
  const stopped = new Promise((resolve) => process.once("SIGTERM", resolve));
  announce({ ready: true });
  if (when === "wait") await connect().blpop(GO, 0);
  const before = cpuSeconds();
  worker.run();
  await stopped;
  await announce(when === "wait" ? { cpu: cpuSeconds() - before } : { latencies });
  process.exit();
}

const verbs = { put: () => put(...args.map(Number)), flow: () => flow(...args.map(Number)), work: () => work(...args) };
verbs[what]();
