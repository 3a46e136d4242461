// A courier of the channel `sms`, beside those of Ada: docs/other-languages.md explains each step.
// node courier.js, with ADA_REDIS_URL, ADA_SMS_URL, ADA_SMS_USERNAME, ADA_SMS_PASSWORD, ADA_SMS_FROM

import { setTimeout as pause } from "node:timers/promises";
import Redis from "ioredis";

const CHANNEL = "sms", SHARD = "{0}", OWNER = `node-${process.pid}-${Date.now()}`;
const LEASE_MS = 30_000, REQUEST_MS = 10_000, MAX_SLEEP_MS = Number(process.env.MAX_SLEEP_MS ?? 3_000);
const RETRY_MS = 5_000, MOST_ATTEMPTS = 5, HELD_MS = 9_999_999_999_999, OPEN = ["queued", "sending"];
const { ADA_REDIS_URL, ADA_SMS_URL, ADA_SMS_USERNAME: username, ADA_SMS_PASSWORD: password, ADA_SMS_FROM: from } = process.env;
const redis = new Redis(ADA_REDIS_URL), events = redis.duplicate({ lazyConnect: true });
let stopping = false, woken = 0, wake = () => {};

async function ada(name, ...args) {
  return redis.fcall(`${await redis.get("library")}_${name}`, 1, `queue:${SHARD}:counters`, SHARD, 0, ...args);
}

// Returns [status, reason]; "queued": nothing was sent, and a later attempt may succeed.
async function send(address, text) {
  const query = new URLSearchParams({ username, password, from, to: address, text, charset: "UTF-8", coding: 2 });
  try {
    const answer = await fetch(`${ADA_SMS_URL}?${query}`, { redirect: "manual", signal: AbortSignal.timeout(REQUEST_MS) });
    if (answer.status === 202) return ["sent", ""];
    if (answer.status === 400) return ["failed", "recipient_unreachable"];
    return [403, 429, 503].includes(answer.status) ? ["queued", "provider_down"] : ["unknown", "answer_lost"];
  } catch (fault) {
    return fault.cause?.code === "ECONNREFUSED" ? ["queued", "provider_down"] : ["unknown", "answer_lost"];
  }
}

// Returns the text for the recipient with a number. A personal text: {{field}} and {{field|default}} stand for its values, \{{ for braces.
async function textsOf(suffix, text, entries) {
  const pages = [...new Set(entries.map((entry) => Math.floor(entry[1] / 200)))], key = `history:${SHARD}:${suffix}`;
  const [fields, ...people] = (await redis.hmget(key, "personal", ...pages.map((page) => `people:${page}`))).map((page) => JSON.parse(page));
  const name = (written) => written.normalize("NFC").toLowerCase().replaceAll("ё", "е").trim().replace(/\s+/g, " ");
  const filled = (values) => (mark, braces, field, fallback = "") => braces ?? values[fields.indexOf(name(field))] ?? fallback;
  return (number) => {
    const values = people[pages.indexOf(Math.floor(number / 200))][number % 200][4] ?? [];
    return text.replace(/\\(\{\{)|\{\{([^{}|]*)(?:\|([^{}]*))?\}\}/g, filled(values));
  };
}

const minuteIn = (zone, at) => {
  const [hour, minute] = new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit", hourCycle: "h23" }).format(at).split(":");
  return hour * 60 + Number(minute);
};

// Returns the ms at which a person wants messages next, 0 if it does at `at`. Hours: `08:00-22:00 Europe/Moscow`; two equal times: half an hour a day.
function opening(hours, at) {
  const [, h, m, endH, endM, zone] = /^(\d\d):(\d\d)-(\d\d):(\d\d) (.+)$/.exec(hours);
  const begin = h * 60 + Number(m), length = (endH * 60 + Number(endM) - begin + 1440) % 1440 || 30;
  const past = (minuteIn(zone, at) - begin + 1440) % 1440;
  if (past < length) return 0;
  const next = (Math.floor(at / 60_000) + 1440 - past) * 60_000;
  return next - ((minuteIn(zone, next) - begin + 2160) % 1440 - 720) * 60_000; // the clock may be changed until then
}

async function deliver([id, token, , , , checkpoint, , , , expires, , , suffix, parcel, text, , place], now) {
  const [, entries, isPersonal] = JSON.parse(parcel), textFor = isPersonal ? await textsOf(suffix, text, entries) : () => text;
  const clock = now - Date.now(), outcomes = [], postponed = [];
  const rows = checkpoint ? JSON.parse(checkpoint) : entries.map((_, n) => [n, place > 1 ? HELD_MS : 0, 0, 0]);
  const fields = rows.map(([n]) => `${entries[n][0]}:${CHANNEL}${entries[n][2] ? `:${entries[n][2]}` : ""}`);
  const stored = fields.length ? await redis.hmget(`history:${SHARD}:${suffix}:outcomes`, ...fields) : [];
  let skip = [], cancelled = 0;
  for (const [n, row] of rows.entries()) {
    const [person, number, contact, contacts, address, hours] = entries[row[0]], attempts = row[2];
    const notBefore = Math.max(row[1], hours ? opening(hours, clock + Date.now()) : 0);
    const outcome = (status, reason = "", count = attempts) =>
      [String(person), typeof person === "number" ? "i" : "s", number, contact, contacts, status, reason, "", count];
    const before = (stored[n] ?? "queued").split("|")[0];
    if (!OPEN.includes(before)) continue;
    if (before === "sending") outcomes.push(outcome("unknown", "crashed"));
    else if (skip.includes(String(person))) outcomes.push(outcome("cancelled"));
    else if (expires && clock + Date.now() >= expires) outcomes.push(outcome("expired", "too_late"));
    else if (cancelled || stopping || notBefore > clock + Date.now()) postponed.push([row[0], notBefore, attempts, row[3]]);
    else {
      // Written before the request: a courier that finds `sending` after a crash does not send a second time.
      const written = JSON.stringify([...outcomes.splice(0), outcome("sending", "", attempts + 1)]);
      const [lease, isCancelled, skipped] = await ada("extend", id, token, LEASE_MS, "", written);
      if (lease !== "ok") return;
      [cancelled, skip] = [isCancelled, skipped.split("\n")];
      let [status, reason] = skip.includes(String(person)) ? ["cancelled", ""] : cancelled ? ["queued", ""] : await send(address, textFor(number));
      if (status === "queued" && attempts + 1 >= MOST_ATTEMPTS) status = "failed";
      if (status === "queued") postponed.push([row[0], clock + Date.now() + RETRY_MS, attempts + 1, 0]);
      outcomes.push(outcome(status, reason, attempts + 1));
    }
  }
  const due = postponed.length ? Math.min(...postponed.map((row) => row[1])) : 0;
  await ada("settle", id, token, "done", due, postponed.length ? JSON.stringify(postponed) : "", "", JSON.stringify(outcomes), "", "", "");
}

const ring = () => { woken++; wake(); };
process.once("SIGTERM", () => { stopping = true; ring(); });
events.on("pmessage", (_, key, event) => { if (event === "del" || event === "expired") ring(); });
// A channel is there as soon as a courier has registered it: recipients of one parcel; that it writes `sending`.
await redis.hset(`channels:${SHARD}`, CHANNEL, JSON.stringify({ parcel: 100, halted: "" }));
await redis.hset(`queue:${SHARD}:tubes`, `${CHANNEL}:announces`, 1);
await events.connect(); // ioredis checks a new connection with INFO, which fails if it has subscribed before
await events.psubscribe(`__keyspace@${redis.options.db}__:delivery:${SHARD}:*`);
console.log("ready");
while (!stopping) {
  const before = woken, claim = await ada("claim", CHANNEL, OWNER, "", 1, 100, LEASE_MS, MAX_SLEEP_MS);
  const [now, , nextAt, , , opensAt, ...tasks] = claim;
  for (const task of tasks) await deliver(task, now);
  if (tasks.length || woken > before) continue;
  const moments = [nextAt, opensAt].filter((moment) => moment >= 0).map((moment) => moment - now);
  await Promise.race([pause(Math.max(0, Math.min(MAX_SLEEP_MS, ...moments))), new Promise((done) => { wake = done; })]);
}
await ada("release_timer", OWNER);
process.exit();
