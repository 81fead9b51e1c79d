// What the page asks the sandbox for.

export async function read(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  return answered(await fetch(`_sandbox/${path}?${new URLSearchParams(given)}`));
}

export async function change(method, path, body) {
  const sent = body === undefined ? {} : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  return answered(await fetch(`_sandbox/${path}`, { method, ...sent }));
}

async function answered(response) {
  const body = await response.json();
  if (!response.ok) throw new Error(body.errors?.[0]?.errorMessage ?? `The sandbox answers ${response.status}.`);
  return body;
}

// Tells each state of the sandbox, and whether it can be heard. A browser opens few connections to one host, and an
// open stream is one of them: so a page that nobody sees has none.
export function listen(onState, onLive) {
  let source = null;
  let later = 0;

  function open() {
    close();
    source = new EventSource("_sandbox/events");
    source.addEventListener("open", () => onLive(true));
    source.addEventListener("state", (event) => onState(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      onLive(false);
      if (source?.readyState === EventSource.CLOSED) later = setTimeout(open, 1000);
    });
  }

  function close() {
    clearTimeout(later);
    source?.close();
    source = null;
  }

  const look = () => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", look);
  look();
}
