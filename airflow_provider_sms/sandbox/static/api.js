// Requests to the sandbox: reads, changes and the stream of state changes.

export async function read(path, query = {}) {
  const parameters = Object.entries(query).filter(([, value]) => value !== null && value !== undefined);
  return bodyOf(await fetch(`_sandbox/${path}?${new URLSearchParams(parameters)}`));
}

export async function change(method, path, body) {
  const content = body === undefined ? {} : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  return bodyOf(await fetch(`_sandbox/${path}`, { method, ...content }));
}

async function bodyOf(response) {
  const body = await response.json();
  if (!response.ok) throw new Error(body.errors?.[0]?.errorMessage ?? `The sandbox responded with status ${response.status}.`);
  return body;
}

// Calls onState with each new state, and onLive with whether the stream is connected. A browser opens few connections to
// one host, and a stream occupies one of them: a hidden page therefore closes its stream.
export function listen(onState, onLive) {
  let source = null;
  let timer = 0;

  function open() {
    close();
    source = new EventSource("_sandbox/events");
    source.addEventListener("open", () => onLive(true));
    source.addEventListener("state", (event) => onState(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      onLive(false);
      if (source?.readyState === EventSource.CLOSED) timer = setTimeout(open, 1000);
    });
  }

  function close() {
    clearTimeout(timer);
    source?.close();
    source = null;
  }

  const update = () => (document.hidden ? close() : open());
  document.addEventListener("visibilitychange", update);
  update();
}
