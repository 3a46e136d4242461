"use strict";
(() => {
  const find = (id) => document.getElementById(id);
  const isLink = (url) => /^https?:/.test(url);
  const worker = navigator.serviceWorker;

  function show(data) {
    find("gone").hidden = Boolean(data);
    if (!data) return;
    document.title = find("title").textContent = data.title;
    [find("text").textContent, find("text").hidden] = [data.text, false];
    for (const one of (data.actions ?? []).filter(({ url }) => isLink(url))) {
      const link = document.createElement("a");
      [link.textContent, link.href, link.className] = [one.title, one.url, "button"];
      find("actions").append(link);
    }
    if (isLink(data.settings)) [find("settings").href, find("settings").hidden] = [data.settings, false];
  }

  worker?.addEventListener("message", (event) => show(event.data));
  if (worker?.controller) worker.controller.postMessage(location.hash.slice(1));
  else show(null);
})();
