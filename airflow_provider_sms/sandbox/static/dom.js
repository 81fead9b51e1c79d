// Elements built from text: no message is ever parsed as markup.

export const by = (id) => document.getElementById(id);

// Returns a new element. data-* and aria-* become attributes, all else properties; a child is an element or a string.
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (/^(data|aria)-/.test(name)) element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

// Returns an element with a message's text, isolated so that its writing direction cannot affect the page around it.
export const text = (tag, className, content) => make(tag, { className, dir: "auto", textContent: content });

export const time = (iso) =>
  make("time", { dateTime: iso, title: iso.replace("T", " "), textContent: iso.slice(11, 19) });

// Shows rows in a list. A row that is already there, by its key, keeps its element, and so its focus and open details.
export function fill(list, rows, create, update) {
  const known = new Map([...list.children].map((child) => [child.dataset.key, child]));
  let next = list.firstElementChild;
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
    if (element === next) next = next.nextElementSibling;
    else list.insertBefore(element, next);
  }
  for (const gone of known.values()) gone.remove();
}
