// A heat map, with its tokens on the axes.
// The size of a cell in pixels: the whole map is visible, unless cells would become too small for labels.
function cellSize({ source, target }, room) {
  const fitting = Math.min(room / Math.max(1, source.length), (window.innerHeight * 0.55) / Math.max(1, target.length));
  return Math.max(15, Math.min(38, Math.floor(fitting)));
}

const colorOf = (share) => `color-mix(in srgb, var(--map-high) ${100 * share}%, var(--map-low))`;

const UNKNOWN = { class: 'unknown', title: 'unknown to this run' };

const labels = (kind, tokens, size, unknown = []) =>
  el('div', { class: `map-${kind}`, 'aria-hidden': 'true' }, tokens.map((token, i) => {
    const label = el('span', { title: token }, words(token, unknown.includes(i) ? UNKNOWN : {}));
    label.style[kind === 'top' ? 'width' : 'height'] = `${size}px`;
    return label;
  }));

// The cells as squares, a path for each level. A pixel between the squares stays free.
function drawCells({ source, levels }, size) {
  const side = 1 - 1 / size;
  const square = (place) => `M${place % source.length} ${Math.floor(place / source.length)}h${side}v${side}h-${side}z`;
  const places = Map.groupBy(levels.keys(), (place) => levels[place]);
  return [...places].map(([level, of]) => svg('path', { fill: colorOf(level / 255), d: of.map(square).join('') }));
}

// A map with its tokens on the axes. The arrow keys and the pointer show single weights. `onPoint` is called with the cell
// (target, source), or with null when the pointer leaves the map.
function mapView(attention, room, onPoint = () => {}) {
  const { source, target, levels, unknown, scale } = attention;
  const size = cellSize(attention, room);
  const readout = el('output', { class: 'readout', 'aria-live': 'polite' }, 'Point at a cell, or use the arrow keys.');
  const frame = svg('rect', { class: 'cursor', height: 1 }); // without a width, it is not drawn
  const drawing = svg('svg', {
    viewBox: `0 0 ${source.length} ${target.length}`,
    width: source.length * size,
    height: target.length * size,
    tabindex: '0',
    role: 'application',
    'aria-roledescription': 'attention map',
    'aria-label': `Attention: ${target.length} target tokens (rows) by ${source.length} source tokens (columns). Arrow keys read single weights.`,
  }, drawCells(attention, size), frame);
  let cursor = null;
  const point = (cell) => {
    grid.querySelectorAll('.pointed').forEach((label) => label.classList.remove('pointed'));
    if (cell) ['.map-left', '.map-top'].forEach((axis, i) => grid.querySelector(axis).children[cell[i]].classList.add('pointed'));
    onPoint(cell);
  };
  const read = (t, s) => {
    cursor = [Math.max(0, Math.min(target.length - 1, t)), Math.max(0, Math.min(source.length - 1, s))];
    const weight = (levels[cursor[0] * source.length + cursor[1]] / 255) * scale;
    readout.replaceChildren(words(target[cursor[0]]), ' looks at ', words(source[cursor[1]]), `: ${weight.toFixed(2)}`);
    fill(frame, { x: cursor[1], y: cursor[0], width: 1 }, []);
    point(cursor);
  };
  const pointer = (event) => {
    const box = drawing.getBoundingClientRect();
    read(Math.floor((event.clientY - box.top) / size), Math.floor((event.clientX - box.left) / size));
  };
  const move = (event) => {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [];
    if (down === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    if (cursor) read(cursor[0] + down, cursor[1] + right);
    else read(0, 0);
    const [left, top] = [grid.querySelector('.map-left').offsetWidth, grid.querySelector('.map-top').offsetHeight];
    grid.style.scrollPadding = `${top}px 0 0 ${left}px`; // the labels stick to the edges and hide cells under them
    frame.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  };
  const leave = () => point(null);
  fill(drawing, { onpointermove: pointer, onpointerdown: pointer, onpointerleave: leave, onblur: leave, onkeydown: move }, []);
  const grid = el('div', { class: 'map-grid', role: 'group', 'aria-label': 'Attention map' },
    el('div', { class: 'map-corner', 'aria-hidden': 'true' }, 'target ↓ source →'),
    labels('top', source, size, unknown), labels('left', target, size), drawing);
  const legend = unknown.length ? el('span', {}, el('span', { class: 'unknown' }, 'italic'), ': unknown to this run') : '';
  const scaleBar = el('span', { class: 'scale' }, 'weight 0', el('span', { class: 'bar' }), '1');
  return el('div', { class: 'map' }, grid, el('div', { class: 'map-foot' }, scaleBar, legend, readout));
}
