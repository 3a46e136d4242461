"use strict";
(() => {
  const box = document.getElementById("devices");
  const [button, status] = [box.querySelector("[data-key]"), box.querySelector("[role=status]")];
  const say = (name) => {
    [status.textContent, status.className, status.hidden] = [box.dataset[name], name === "sent" ? "good" : "bad", false];
  };
  if (!("serviceWorker" in navigator && "PushManager" in window && "Notification" in window)) {
    const isTouchedMac = navigator.userAgent.includes("Macintosh") && navigator.maxTouchPoints > 1; // so an iPad calls itself
    say(isTouchedMac || /iPhone|iPad/.test(navigator.userAgent) ? "iphone" : "unsupported");
    return;
  }
  const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (one) => one.charCodeAt(0));

  async function subscription() {
    const registration = await navigator.serviceWorker.register("../push/worker.js");
    const options = { userVisibleOnly: true, applicationServerKey: bytes(button.dataset.key) };
    const before = await registration.pushManager.getSubscription();
    try {
      return await registration.pushManager.subscribe(options);
    } catch (fault) {
      if (fault.name !== "InvalidStateError" || !before) throw fault;
      await before.unsubscribe(); // it was made with another key
      return registration.pushManager.subscribe(options);
    }
  }

  async function switchOn() {
    if ((await Notification.requestPermission()) !== "granted") return say("denied");
    const body = JSON.stringify(await subscription());
    const headers = { "Content-Type": "application/json" };
    const answer = await fetch(`${location.pathname}/devices`, { method: "POST", headers, body });
    if (!answer.ok) return say("failed");
    if (answer.status === 202) return say("sent");
    location.replace(location.pathname);
  }

  button.hidden = false;
  button.addEventListener("click", () => {
    button.disabled = true;
    switchOn().catch(() => say("failed")).finally(() => (button.disabled = false));
  });
})();
