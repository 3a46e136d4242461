// A worker and its callers: node shout.js, with ADA_REDIS_URL.

import { call, cancel, close, connect, put, wait, work } from "./ada.js";

const ada = await connect(process.env.ADA_REDIS_URL), stop = new AbortController();
let failures = 0;

async function shout(task) {
  if (task.body === "hopeless") return { result: "failed", answer: "no voice" };
  if (task.body === "shaky" && failures++ === 0) return { result: "retry", afterMs: 1, error: "a frog in the throat" };
  return task.body.toUpperCase();
}

const working = work(ada, "voices", shout, { signal: stop.signal });
console.log(await call(ada, "voices", "hello"));
console.log(await wait(ada, await put(ada, "voices", "shaky", { lane: "chat 7", user: "42", tags: ["greeting"] })));
console.log(await call(ada, "voices", "hopeless").catch((fault) => fault.state));
console.log(await cancel(ada, await put(ada, "voices", "later", { due: new Date(Date.now() + 3_600_000) })));
stop.abort();
await working;
close(ada);
