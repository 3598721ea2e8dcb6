// A table that scrolls inside a box if the page is too narrow. The edge of the box fades while columns are hidden.
function scrolling(label, table) {
  const box = el('div', { class: 'scroll', role: 'region', tabindex: '0', 'aria-label': label }, table);
  const look = () => {
    box.classList.toggle('has-more', box.scrollLeft + box.clientWidth < box.scrollWidth - 1);
    box.classList.toggle('is-scrolled', box.scrollLeft > 0);
  };
  box.addEventListener('scroll', look, { passive: true });
  const observer = new ResizeObserver(look);
  observer.observe(box);
  observer.observe(table);
  return box;
}

const numberCell = (...content) => el('td', { class: 'number' }, content);
// The arm or run of a row. On a phone, its line style stays visible, like the first column.
const whoCell = (label) => el('td', { class: 'who' }, label);
const groupCell = (tag, rowspan, ...content) => el(tag, tag === 'th' ? { scope: 'rowgroup', rowspan } : { class: 'number', rowspan }, content);
const starred = ({ label, is_thin: isThin }) => label + (isThin ? '*' : '');

const tableOf = (label, header, rows, attributes = {}) =>
  scrolling(label, el('table', attributes,
    el('caption', { class: 'hidden' }, label),
    el('thead', {}, el('tr', {}, header.map((cell) => el('th', { scope: 'col' }, cell)))),
    el('tbody', {}, rows)));
