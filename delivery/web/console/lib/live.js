/**
 * What changes while a page is open: one stream of /v1/live for the whole tab, only while the tab is visible.
 *
 * An event has a name (its topic) and JSON as data. `reread` means that events were missed: what is shown must be loaded
 * again. Handlers are called at most four times a second, each time with all events since the last.
 */

const PAINT_PAUSE = 250;
const RECONNECT_PAUSE = 3000;
const POLL_PAUSE = 5000;

const listeners = new Set();
const badges = new Set();
let stream = null, streamed = "", timer = 0, polling = 0;
let status = "off", freshAt = Date.now();
let pending = [];

/**
 * Calls `handle(events)` for events of these topics: a list of {topic, data}, with topic "reread" after a gap. Returns a
 * function that ends it. Pass a page's `signal` and it ends with the page.
 */
export function follow(topics, handle, signal) {
  const listener = { topics: new Set(topics), handle };
  listeners.add(listener);
  schedule();
  const end = () => { listeners.delete(listener); schedule(); };
  signal?.addEventListener("abort", end, { once: true });
  return end;
}

/** Calls `show({status, freshAt})` whenever it changes: "live", "behind" (the data has the age of `freshAt`) or "off". */
export function watchLive(show) {
  badges.add(show);
  show({ status, freshAt });
  return () => badges.delete(show);
}

/** Says that what is shown is as of now, such as after loading a list. */
export function markFresh() {
  freshAt = Date.now();
  tell();
}

function tell(next = status) {
  status = next;
  for (const show of badges) show({ status, freshAt });
}

const wantedTopics = () => [...new Set([...listeners].flatMap((one) => [...one.topics]))].sort().join(",");

let scheduled = false;
function schedule() {
  if (scheduled) return;
  scheduled = true;
  queueMicrotask(() => { scheduled = false; connect(); });
}

function connect() {
  const topics = document.visibilityState === "visible" ? wantedTopics() : "";
  if (topics === streamed) return;
  close();
  streamed = topics;
  if (!topics) return tell("off");
  open(topics);
}

function open(topics) {
  stream = new EventSource(`/v1/live?topics=${encodeURIComponent(topics)}`);
  stream.onopen = () => { clearInterval(polling); freshAt = Date.now(); tell("live"); };
  stream.onerror = () => {
    tell("behind");
    if (stream?.readyState === EventSource.CLOSED) retryLater();
  };
  for (const topic of [...topics.split(","), "reread"]) {
    stream.addEventListener(topic, (event) => receive(topic, event.data ? JSON.parse(event.data) : null));
  }
}

/** The server has refused the stream: it is asked for again, and meanwhile the lists are read now and then. */
function retryLater() {
  close();
  timer = setTimeout(() => { if (streamed) open(streamed); }, RECONNECT_PAUSE + Math.random() * RECONNECT_PAUSE);
  clearInterval(polling);
  polling = setInterval(() => receive("reread", null), POLL_PAUSE);
}

function close() {
  stream?.close();
  stream = null;
  clearTimeout(timer);
  clearInterval(polling);
}

let paintTimer = 0, paintedAt = 0;

function receive(topic, data) {
  freshAt = Date.now();
  pending.push({ topic, data });
  if (paintTimer) return;
  paintTimer = setTimeout(deliver, Math.max(0, paintedAt + PAINT_PAUSE - Date.now()));
}

function deliver() {
  paintTimer = 0;
  paintedAt = Date.now();
  const events = pending;
  pending = [];
  for (const { topics, handle } of [...listeners]) {
    const mine = events.filter(({ topic }) => topic === "reread" || topics.has(topic));
    if (mine.length) handle(mine);
  }
}

document.addEventListener("visibilitychange", () => {
  const wasAway = streamed === "" && listeners.size > 0;
  schedule();
  if (document.visibilityState === "visible" && wasAway) receive("reread", null);
});
