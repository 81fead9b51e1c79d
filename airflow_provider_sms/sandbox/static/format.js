// Formats of numbers, counts and messages.

const figures = new Intl.NumberFormat("en", { maximumFractionDigits: 6 });

export const amount = (value) => figures.format(value);
export const count = (value, one, many = `${one}s`) => `${amount(value)} ${value === 1 ? one : many}`;

// The details of a message, besides its text.
export const facts = (message) => [
  message.encoding,
  count(message.parts, "part"),
  `costs ${amount(message.cost)}`,
  message.network,
];

export const shown = (message) =>
  message.characters > message.content.length
    ? `${message.content}… (${count(message.characters, "character")} in total)`
    : message.content;
