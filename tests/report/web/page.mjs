// The functions of the page's script without a browser: its files in one scope, as on the page, but for the one that
// draws it. `PAGE_SCRIPT` names the script.
import { readFileSync } from 'node:fs';
import process from 'node:process';

// As much of an element as `elements.js` needs, and its text.
class FakeElement {
  constructor(tag) {
    Object.assign(this, { tag, attributes: {}, children: [], style: {} });
  }

  append(...children) {
    this.children.push(...children);
  }

  setAttribute(name, value) {
    this.attributes[name] = value;
  }

  addEventListener() {}

  get text() {
    return this.children.map((child) => (child instanceof FakeElement ? child.text : String(child))).join('');
  }

  // All elements of a tag inside, in the order of the page.
  every(tag) {
    return this.children
      .filter((child) => child instanceof FakeElement)
      .flatMap((child) => [...(child.tag === tag ? [child] : []), ...child.every(tag)]);
  }
}

const document = { createElement: (tag) => new FakeElement(tag), createElementNS: (_, tag) => new FakeElement(tag) };

class ResizeObserver {
  observe() {}
}

const body = readFileSync(process.env.PAGE_SCRIPT, 'utf8');

// The named functions, for a page that holds `data`.
export function load(names, data = {}) {
  const make = new Function('document', 'ResizeObserver', 'data', `'use strict';\n${body}\nreturn { ${names.join(', ')} };`);
  return make(document, ResizeObserver, data);
}

export const texts = (elements) => elements.map((one) => one.text);
