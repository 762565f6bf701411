// What a page does beyond showing: it keeps itself up to date, and asks WebHDFS to change what it shows.
// All that comes from servers as markup was made by this page's own server; all else is text.
"use strict";

// Regions that have changed come as they were made first. One with the keyboard in it keeps its place.
function follow() {
  const place = document.body.dataset.live;
  const connection = document.getElementById("connection");
  if (!place || !window.EventSource) return;
  let stream;
  let rest = 5000;
  function begin() {
    stream = new EventSource("/live?page=" + encodeURIComponent(place));
    stream.onopen = () => { connection.textContent = "live"; rest = 5000; };
    stream.onmessage = (event) => show(JSON.parse(event.data));
    stream.onerror = () => {
      connection.textContent = "not connected";
      if (stream.readyState !== EventSource.CLOSED) return;
      setTimeout(begin, rest);
      rest = Math.min(rest * 2, 60000);
    };
  }
  // Nobody looks at what is not seen.
  document.addEventListener("visibilitychange", () => {
    stream.close();
    if (!document.hidden) begin();
  });
  begin();
}

function show({ id, html }) {
  const region = document.getElementById(id);
  if (!region || region.dataset.html === html) return;
  const scrolled = [...region.querySelectorAll(".wide")].map((wide) => wide.scrollLeft);
  const all = () => [...region.querySelectorAll("a,button,input,select,summary,[tabindex]")];
  const focused = region.contains(document.activeElement) ? all().indexOf(document.activeElement) : -1;
  // Somebody fills a form in.
  if (focused >= 0 && /^(INPUT|SELECT)$/.test(document.activeElement.tagName)) return;
  region.innerHTML = html;
  region.dataset.html = html;
  region.querySelectorAll(".wide").forEach((wide, index) => { wide.scrollLeft = scrolled[index] || 0; });
  if (focused >= 0) all()[focused]?.focus({ preventScroll: true });
}

function say(text, isBad) {
  const said = document.getElementById("said");
  said.textContent = text;
  said.className = isBad ? "bad" : "";
}

// The address of an operation on what a form is about, with the form's fields as parameters.
function target(form, more) {
  const query = new URLSearchParams({ op: form.dataset.op, "user.name": form.dataset.user, ...more });
  for (const field of form.elements) {
    if (field.name && !field.name.startsWith("_") && field.type !== "file") query.set(field.name, field.value);
  }
  const name = form.elements._name;
  let path = form.dataset.path;
  if (name) path = path.replace(/\/$/, "") + "/" + encodeURIComponent(name.value);
  return path + "?" + query;
}

const HEADERS = { "X-XSRF-HEADER": "page" };

async function failure(answer) {
  const text = await answer.text();
  try {
    return JSON.parse(text).RemoteException.message.split("\n")[0];
  } catch {
    return answer.status + " " + text.slice(0, 300);
  }
}

async function change(form) {
  const answer = await fetch(target(form), { method: form.dataset.method, headers: HEADERS });
  if (!answer.ok) return say(await failure(answer), true);
  const said = await answer.json().catch(() => ({}));
  if (said.boolean === false) return say("It was not done: is there something of that name, or nothing?", true);
  if (form.dataset.then) location.assign(form.dataset.then);
  else location.reload();
}

function upload(form) {
  const files = [...form.elements._file.files];
  const progress = form.querySelector("progress");
  const one = (file) => new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    const path = form.dataset.path.replace(/\/$/, "") + "/" + encodeURIComponent(file.name);
    const overwrite = form.elements._overwrite.checked;
    const query = new URLSearchParams({ op: "CREATE", "user.name": form.dataset.user, overwrite, through: "namenode" });
    request.open("PUT", path + "?" + query);
    request.setRequestHeader("X-XSRF-HEADER", "page");
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = (event) => { progress.value = event.loaded / Math.max(event.total, 1); };
    request.onload = () => request.status === 201 ? done() : failure(new Response(request.responseText, { status: request.status })).then(failed);
    request.onerror = () => failed("the connection was lost");
    request.send(file);
  });
  progress.hidden = false;
  (async () => {
    try {
      for (const file of files) {
        say("Writing " + file.name);
        await one(file);
      }
      location.reload();
    } catch (why) {
      progress.hidden = true;
      say(String(why), true);
    }
  })();
}

async function peek(button) {
  const shown = document.getElementById("bytes");
  const { path, user, offset, length } = button.dataset;
  const query = new URLSearchParams({ op: "OPEN", "user.name": user, offset, length, through: "namenode" });
  const answer = await fetch(path + "?" + query, { headers: HEADERS });
  if (!answer.ok) return say(await failure(answer), true);
  shown.textContent = new TextDecoder().decode(await answer.arrayBuffer());
  shown.hidden = false;
  say(button.textContent + " of the file:");
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.dataset.op) return;
  event.preventDefault();
  if (form.dataset.ask && !confirm(form.dataset.ask)) return;
  if (form.dataset.op === "CREATE") return upload(form);
  change(form).catch((why) => say(String(why), true));
});
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-length]");
  if (button) peek(button).catch((why) => say(String(why), true));
});
for (const part of document.querySelectorAll(".needs-script")) part.hidden = false;
follow();
