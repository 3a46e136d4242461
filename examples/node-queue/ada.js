// The queue of Ada for programs in Node: connect, put, call, wait, cancel, work, close (docs/other-languages.md).
import { crc32 } from "node:zlib";
import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import Redis from "ioredis";
const unique = (name) => `${name}-${randomBytes(4).toString("hex")}`;

// Connects to the address of `./ada redis-url`. `client`: one word, by which a restarted program gets its answers.
export async function connect(url, client = unique("node")) {
  const redis = new Redis(url);
  const caller = `node-${randomBytes(16).toString("hex")}`; // names the puts: that of a program before this one would make them repeats
  return { redis, client, caller, shards: Number((await redis.get("shards")) ?? 1), calls: 0, open: new Set(), lastNs: 0n };
}

export const close = (ada) => ada.redis.disconnect();

// Calls a function of the server (docs/functions.md).
export async function run(ada, shard, name, ...args) {
  const library = await ada.redis.get("library");
  return ada.redis.fcall(`${library}_${name}`, 1, `queue:{${shard}}:counters`, `{${shard}}`, 0, ...args);
}

// Adds a task, returns its id. Options: tenant, lane, priority, due, expires (Date), kind, attempts, user, tags, reply.
export async function put(ada, tube, body, options = {}) {
  if (typeof body !== "string") throw new TypeError(`The body of a task must be a text, and not ${typeof body}.`);
  const { tenant = "default", lane = "", priority = 5, kind = "", attempts = "", user = "" } = options;
  const [due, expires] = [options.due, options.expires].map((date) => date?.getTime() ?? "");
  const shard = lane ? crc32(lane) % ada.shards : 0, id = nextId(ada), number = ++ada.calls;
  const end = [user, (options.tags ?? []).join("\n"), options.reply ?? "anybody", body];
  const row = [id, tenant, lane, priority, due, expires, kind, attempts, ...end];
  ada.open.add(number); // a repeat after a lost connection adds nothing: the server knows the numbers that are open
  try {
    await run(ada, shard, "put", ada.caller, number, ada.open.values().next().value, tube, ...row);
  } finally {
    ada.open.delete(number);
  }
  return `${shard}.${id}`;
}

// Adds a task and returns its answer. Throws an error with `state` if it does not end as done, or not in time.
export async function call(ada, tube, body, timeoutMs = 30_000, options = {}) {
  const given = { expires: new Date(Date.now() + timeoutMs), ...options, reply: ada.client };
  const id = await put(ada, tube, body, given);
  const { state, answer } = await wait(ada, id, timeoutMs);
  if (state === "done") return answer;
  throw Object.assign(new Error(`The task ${id} is ${state}: ${answer}`), { state });
}

// Returns { state, answer } when a task has ended, also if that was before: ends are kept for an hour.
export async function wait(ada, taskId, timeoutMs = 30_000) {
  const [shard, id] = split(taskId), until = Date.now() + timeoutMs, reader = ada.redis.duplicate();
  const [own, anybody] = [ada.client, "anybody"].map((client) => `reply:{${shard}}:${client}`);
  try {
    const [state, answer] = await run(ada, shard, "notify_end", id, ada.client);
    if (state !== "live" && state !== "gone") return { state, answer };
    const before = state === "gone" ? await ada.redis.xrange(anybody, "-", "+") : [];
    for (let after = "0-0", entries = before, left = timeoutMs; left > 0; left = until - Date.now()) {
      const [at, found] = entries.map(([at, flat]) => [at, fieldsOf(flat)]).find(([, end]) => end.task === id) ?? [];
      if (found && entries !== before) await ada.redis.xdel(own, at);
      if (found) return { state: found.state, answer: found.answer };
      const replies = await reader.xread("COUNT", 100, "BLOCK", left, "STREAMS", own, after);
      entries = replies?.[0][1] ?? [];
      after = entries.at(-1)?.[0] ?? after;
    }
    throw Object.assign(new Error(`The task ${taskId} has not ended within ${timeoutMs} ms.`), { state });
  } finally {
    reader.disconnect();
  }
}

// Ends a task. Returns whether it was there; of a running one `task.cancelled()` becomes true.
export async function cancel(ada, taskId) {
  const [shard, id] = split(taskId);
  const [ended, flagged] = await run(ada, shard, "cancel_tasks", id);
  return ended + flagged > 0;
}

// Runs tasks of a tube until `signal` aborts, at most `concurrency` at once; then finishes those that run.
// `handler(task)` gets id, body, attempts, checkpoint, kind, lane, user, tenant, save(checkpoint), cancelled(), and
// returns the answer, or an object: { result: "failed" | "retry" | "bury", answer, error, afterMs, body, checkpoint }.
// What it throws is a retry after a pause.
export async function work(ada, tube, handler, options = {}) {
  const { concurrency = 10, leaseMs = 30_000, maxSleepMs = 3_000, signal } = options;
  const owner = unique(tube), running = new Set(), events = ada.redis.duplicate({ lazyConnect: true });
  let wake = () => {};
  signal?.addEventListener("abort", () => wake());
  events.on("pmessage", () => wake());
  await events.connect(); // ioredis checks a new connection with INFO, which fails if it has subscribed before
  await events.psubscribe(`__keyspace@${ada.redis.options.db}__:delivery:{*}:idle:${tube}`);
  while (!signal?.aborted) {
    const woken = new Promise((done) => { wake = done; });
    let sleepMs = maxSleepMs;
    for (let shard = 0; shard < ada.shards; shard++) {
      const limit = concurrency - running.size;
      const numbers = [limit, limit, leaseMs, maxSleepMs];
      const [now, , nextAt, , , opensAt, ...rows] = await run(ada, shard, "claim", tube, owner, "", ...numbers);
      for (const row of rows) {
        const attempt = handle(ada, shard, row, now, handler, leaseMs)
          .catch((fault) => console.error(`task ${row[0]} is left to its lease:`, fault))
          .finally(() => { running.delete(attempt); wake(); });
        running.add(attempt);
      }
      const moments = [nextAt, opensAt].filter((moment) => moment >= 0).map((moment) => Math.max(0, moment - now));
      if (limit) sleepMs = Math.min(sleepMs, ...moments, rows.length === limit ? 0 : maxSleepMs);
    }
    await Promise.race([pause(running.size < concurrency ? sleepMs : maxSleepMs, null, { ref: false }), woken]);
  }
  await Promise.all(running);
  for (let shard = 0; shard < ada.shards; shard++) await run(ada, shard, "release_timer", owner);
  events.disconnect();
}

async function handle(ada, shard, row, claimedAt, handler, leaseMs) {
  const [id, token, attempts, , body, checkpoint, , kind, lane, , user, tenant] = row, begun = Date.now();
  let isCancelled = false;
  const save = async (progress) => {
    const [lease, cancelled] = await run(ada, shard, "extend", id, token, leaseMs, progress, "[]");
    isCancelled ||= lease !== "ok" || cancelled === 1;
    return !isCancelled;
  };
  const task = { id: `${shard}.${id}`, body, attempts, checkpoint, kind, lane, user, tenant, save };
  const renewal = setInterval(() => save("").catch(() => {}), leaseMs / 3);
  const end = await resultOf(handler, { ...task, cancelled: () => isCancelled });
  clearInterval(renewal);
  const backoffMs = Math.min(300_000, 1000 * 2 ** Math.min(attempts - 1, 20)) * (0.5 + Math.random() / 2);
  const due = end.result === "retry" ? Math.round(claimedAt + Date.now() - begun + (end.afterMs ?? backoffMs)) : 0;
  const texts = [end.checkpoint, "", "", end.body, end.answer, end.error].map((text) => String(text ?? ""));
  await run(ada, shard, "settle", id, token, end.result ?? "done", due, ...texts);
}

async function resultOf(handler, task) {
  try {
    const result = await handler(task);
    if (typeof result !== "object" || result === null) return { answer: result };
    if (!("result" in result)) throw new TypeError("A handler must return a text or an object with `result`.");
    return result;
  } catch (fault) {
    return { result: "retry", error: String(fault) };
  }
}

const split = (id) => [Number(id.split(".", 1)[0]), id.slice(id.indexOf(".") + 1)];
const fieldsOf = (flat) => Object.fromEntries(flat.flatMap((name, n) => (n % 2 ? [] : [[name, flat[n + 1]]])));

// Ids sort by time and are unique: nanoseconds to base 36, and the name of this program.
function nextId(ada) {
  const now = BigInt(Date.now()) * 1_000_000n;
  ada.lastNs = now > ada.lastNs ? now : ada.lastNs + 1n;
  return `${ada.lastNs.toString(36)}.${ada.client}`;
}
