// Elements, made of text: nothing that arrived is ever read as markup.

export const by = (id) => document.getElementById(id);

// An element. Properties are set as they are, data-* and aria-* as attributes; a child is an element or a text.
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (/^(data|aria)-/.test(name)) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// A text by somebody: isolated, so that its direction, or an override of it, ends where it does.
export const text = (tag, className, content) => make(tag, { className, dir: "auto", textContent: content });

export const time = (iso) =>
  make("time", { dateTime: iso, title: iso.replace("T", " "), textContent: iso.slice(11, 19) });

// Sets the children of a list to the given rows, by key: what stays keeps its element, with focus and what is open.
export function fill(list, rows, create, update) {
  const known = new Map([...list.children].map((child) => [child.dataset.key, child]));
  let place = list.firstElementChild;
  for (const row of rows) {
    const key = String(row.key);
    let element = known.get(key);
    if (element) {
      known.delete(key);
      if (update) update(element, row);
    } else {
      element = create(row);
      element.dataset.key = key;
    }
    if (element === place) place = place.nextElementSibling;
    else list.insertBefore(element, place);
  }
  for (const gone of known.values()) gone.remove();
}
