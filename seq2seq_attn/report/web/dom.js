// Elements that all parts of the report use: numbers, sections, choices, and the line styles of runs.
const integer = (value) => value.toLocaleString('en');
const fixed = (value, digits = 1) => (value === null || value === undefined ? '–' : value.toFixed(digits));
function signed(value, digits = 1) {
  if (value === null || value === undefined) return '–';
  const size = Math.abs(value).toFixed(digits);
  return (Number(size) === 0 ? '' : value < 0 ? '−' : '+') + size;
}
const pValue = (value) => (value === null ? '–' : value < 0.001 ? '<0.001' : value.toFixed(3));
const interval = (one, digits = 1) => `${fixed(one.low, digits)} – ${fixed(one.high, digits)}`;

const section = (id, title, ...content) =>
  el('section', { id, 'aria-labelledby': `${id}-title` }, el('h2', { id: `${id}-title` }, title), content);

const note = (...content) => el('p', { class: 'note' }, content);
const control = (...content) => el('p', { class: 'control' }, content);
// A choice among options. An option is a pair of a value and a text.
const optionsOf = (pairs, chosenValue) => pairs.map(([value, text]) => el('option', { value, selected: value === chosenValue }, text));
const checkbox = (id, label, onchange, checked = false) =>
  control(el('label', {}, el('input', { type: 'checkbox', id, checked, onchange: (event) => onchange(event.target.checked) }), label));
const choice = (id, label, options, onchange) => control(el('label', { for: id }, label), el('select', { id, onchange }, options));

// An ensemble has no configuration, so the page shows neither its settings nor learning curves.
const hasConfig = (run) => Object.keys(run.config).length > 0;

// The line style of a run or an arm. Styles differ in color, dash and marker, so that readers need not tell colors
// apart. The runs of an arm have the same style.
const styleOf = (run) => (data.report.groups ? data.report.groups.findIndex((arm) => arm.runs.includes(data.runs[run].name)) : run);
const DASHES = ['', '7 4', '2 3', '9 3 2 3', '12 4', '4 2'];
const MARKERS = ['circle', 'square', 'triangle', 'diamond'];

function marker(style, x, y, size = 4) {
  const points = {
    square: [[-1, -1], [1, -1], [1, 1], [-1, 1]],
    triangle: [[0, -1.25], [1.15, 0.9], [-1.15, 0.9]],
    diamond: [[0, -1.4], [1.4, 0], [0, 1.4], [-1.4, 0]],
  }[MARKERS[(style + Math.floor(style / 6)) % MARKERS.length]];
  const attributes = { class: `marker run-${style % 6}` };
  if (!points) return svg('circle', { ...attributes, cx: x, cy: y, r: size });
  return svg('polygon', { ...attributes, points: points.map(([dx, dy]) => `${x + dx * size},${y + dy * size}`).join(' ') });
}

const swatch = (style) =>
  svg('svg', { class: 'swatch', width: 30, height: 12, 'aria-hidden': 'true' },
    svg('line', { class: `line run-${style % 6}`, x1: 0, x2: 30, y1: 6, y2: 6, 'stroke-dasharray': DASHES[style % 6] }),
    marker(style, 15, 6, 3.6));

const styleLabel = (style, name) => el('span', { class: 'run', title: name }, swatch(style), words(name));
const runLabel = (run) => styleLabel(styleOf(run), data.runs[run].name);
