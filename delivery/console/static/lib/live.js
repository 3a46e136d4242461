/**
 * What changes while a page is open: one stream of /v1/live for the whole tab, only while the tab is visible.
 *
 * An event has a name (its topic) and JSON as data. `reread` means that events were missed: what is shown must be loaded
 * again. A handler is called at most four times a second, or less often if it asks for that, each time with all events
 * since the last.
 */

const PAINT_PAUSE = 250;
const RECONNECT_PAUSE = 3000;
const POLL_PAUSE = 5000;
// While the stream is open: ages grow, and a message that is only scheduled has no event.
const QUIET_PAUSE = 15000;

const listeners = new Set();
const badges = new Set();
let stream = null, streamed = "", timer = 0, polling = 0;
let status = "off", freshAt = Date.now();

/**
 * Calls `handle(events)` for events of these topics: a list of {topic, data}, with topic "reread" after a gap. What it
 * returns is awaited before it is called again, `pause` ms later at the earliest. Returns a function that ends it. Pass a
 * page's `signal` and it ends with the page.
 */
export function follow(topics, handle, signal, pause = PAINT_PAUSE) {
  const listener = { topics: new Set(topics), handle, pause, events: [], isBusy: false };
  listeners.add(listener);
  rest(listener); // its page has just been read
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
  poll(POLL_PAUSE);
  stream = new EventSource(`/v1/live?topics=${encodeURIComponent(topics)}`);
  stream.onopen = () => {
    poll(QUIET_PAUSE);
    receive("reread", null); // what changed between the reading of a page and now
    tell("live");
  };
  stream.onerror = () => {
    poll(POLL_PAUSE);
    tell("behind");
    if (stream?.readyState === EventSource.CLOSED) retryLater();
  };
  for (const topic of [...topics.split(","), "reread"]) {
    stream.addEventListener(topic, (event) => receive(topic, JSON.parse(event.data)));
  }
}

/** The server has refused the stream: it is asked for again, and meanwhile what is shown is read now and then. */
function retryLater() {
  stream.close();
  clearTimeout(timer);
  timer = setTimeout(() => { if (streamed) open(streamed); }, RECONNECT_PAUSE + Math.random() * RECONNECT_PAUSE);
}

function poll(pause) {
  clearInterval(polling);
  polling = setInterval(() => receive("reread", null), pause);
}

function close() {
  stream?.close();
  stream = null;
  clearTimeout(timer);
  clearInterval(polling);
}

function receive(topic, data) {
  for (const listener of listeners) {
    if (topic === "reread" || listener.topics.has(topic)) listener.events.push({ topic, data });
    deliver(listener);
  }
}

/** One call at a time, with a pause behind each: what arrives meanwhile comes with the next. */
async function deliver(listener) {
  if (listener.isBusy || !listener.events.length || !listeners.has(listener)) return;
  listener.isBusy = true;
  try {
    await listener.handle(listener.events.splice(0));
  } finally {
    rest(listener);
  }
}

function rest(listener) {
  listener.isBusy = true;
  setTimeout(() => { listener.isBusy = false; deliver(listener); }, listener.pause);
}

document.addEventListener("visibilitychange", () => {
  const wasAway = streamed === "" && listeners.size > 0;
  schedule();
  if (document.visibilityState === "visible" && wasAway) receive("reread", null);
});
