// Make elements from tags, attributes and children. Strings become text nodes, so markup in them is never parsed.
function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const SVG = 'http://www.w3.org/2000/svg'; // the name of the SVG language; this address is never fetched
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const element = (id) => document.getElementById(id);

function refill(node, ...children) {
  node.replaceChildren();
  fill(node, {}, children);
}

// Text of unknown language: its own characters decide its direction, and it does not affect the text around it.
const words = (text, attributes = {}) => el('bdi', { dir: 'auto', ...attributes }, text);
