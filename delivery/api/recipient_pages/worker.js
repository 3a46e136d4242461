"use strict";
// Shows the notifications of this browser. Their fields: couriers/web_push/content.py.
const opened = new Map(); // tag → the notification whose page is being opened

async function show(data) {
  const actions = (data.actions ?? []).map((one, number) => ({ action: String(number), title: one.title }));
  const shown = actions.slice(0, Notification.maxActions ?? 2);
  await self.registration.showNotification(data.title, { body: data.text, tag: data.tag, actions: shown, data });
}

async function report(data) {
  if (data.receipt) await fetch(data.receipt, { method: "POST", mode: "no-cors" });
}

const KEPT = "renewal";

/** Keeps what proves later that this browser had the subscription: nobody else knows its keys. */
async function remember(data) {
  const subscription = await self.registration.pushManager.getSubscription();
  if (!subscription || !data.settings) return;
  const key = [...new Uint8Array(subscription.options.applicationServerKey)];
  const kept = { page: data.settings, key, replaces: subscription.toJSON() };
  await (await caches.open(KEPT)).put(KEPT, new Response(JSON.stringify(kept)));
}

async function renew(given) {
  const { page, key, replaces } = await (await caches.match(KEPT)).json();
  const options = { userVisibleOnly: true, applicationServerKey: Uint8Array.from(key) };
  const subscription = given ?? (await self.registration.pushManager.subscribe(options));
  const body = JSON.stringify({ ...subscription.toJSON(), replaces });
  await fetch(`${page}/devices`, { method: "POST", headers: { "Content-Type": "application/json" }, body });
}

async function press(data, action) {
  if (action.answers) {
    const answer = await fetch(action.url, { method: "POST" }).catch(() => null);
    if (answer?.ok) {
      return self.registration.showNotification(data.title, { body: `✓ ${action.title}`, tag: data.tag, data });
    }
  }
  return self.clients.openWindow(action.url);
}

function open(data) {
  opened.set(data.tag, data);
  return self.clients.openWindow(data.page ?? `message#${data.tag}`);
}

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("push", (event) => {
  const data = event.data?.json();
  if (data) event.waitUntil(show(data).then(() => Promise.allSettled([report(data), remember(data)])));
});

// A browser has got another subscription from its push service, or is to ask for one.
self.addEventListener("pushsubscriptionchange", (event) => event.waitUntil(renew(event.newSubscription)));

self.addEventListener("notificationclick", (event) => {
  const { notification, action } = event;
  const pressed = action === "" ? null : notification.data.actions?.[Number(action)];
  notification.close();
  event.waitUntil(pressed ? press(notification.data, pressed) : open(notification.data));
});

// The page of a message asks for it by its tag.
self.addEventListener("message", (event) => event.source.postMessage(opened.get(event.data) ?? null));
