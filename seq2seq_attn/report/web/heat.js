// A heat map on a canvas, with its tokens on the axes.
const MAX_CANVAS = 12000; // pixels of a side and of the area of a canvas that every browser supports
const MAX_AREA = 16_000_000;

// The size of a cell in pixels: the whole map is visible, unless cells would become too small for labels.
function cellSize({ source, target }, room) {
  const fitting = Math.min(room / Math.max(1, source.length), (window.innerHeight * 0.55) / Math.max(1, target.length));
  const size = Math.max(15, Math.min(38, Math.floor(fitting)));
  return Math.max(1, Math.min(size, Math.floor(MAX_CANVAS / Math.max(source.length, target.length))));
}

function mapColors() {
  const style = getComputedStyle(document.documentElement);
  const [from, to] = ['--map-low', '--map-high'].map((name) => style.getPropertyValue(name).trim().split(' ').map(Number));
  return Array.from({ length: 256 }, (_, level) => {
    return `rgb(${from.map((low, i) => Math.round(low + (level / 255) * (to[i] - low))).join(' ')})`;
  });
}

const UNKNOWN = { class: 'unknown', title: 'unknown to this run' };

const labels = (kind, tokens, size, unknown = []) =>
  el('div', { class: `map-${kind}`, 'aria-hidden': 'true' }, tokens.map((token, i) => {
    const label = el('span', { title: token }, words(token, unknown.includes(i) ? UNKNOWN : {}));
    label.style[kind === 'top' ? 'width' : 'height'] = `${size}px`;
    return label;
  }));

function drawMap(canvas, { source, target, levels }, size, cursor) {
  const side = size * Math.max(source.length, target.length);
  const area = size * size * source.length * target.length;
  const scale = Math.min(window.devicePixelRatio || 1, MAX_CANVAS / side, Math.sqrt(MAX_AREA / area));
  canvas.width = Math.max(1, Math.round(source.length * size * scale));
  canvas.height = Math.max(1, Math.round(target.length * size * scale));
  const pen = canvas.getContext('2d');
  const colors = mapColors();
  pen.scale(scale, scale);
  const gap = size > 6 ? 1 : 0;
  for (let t = 0; t < target.length; t++) {
    for (let s = 0; s < source.length; s++) {
      pen.fillStyle = colors[levels[t * source.length + s]];
      pen.fillRect(s * size, t * size, size - gap, size - gap);
    }
  }
  if (!cursor) return;
  pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue('--cursor').trim();
  pen.lineWidth = 2;
  pen.strokeRect(cursor[1] * size + 1, cursor[0] * size + 1, size - 3, size - 3);
}

// A map with its tokens on the axes. The arrow keys and the pointer show single weights. `onPoint` is called with the cell
// (target, source), or with null when the pointer leaves the map.
function mapView(attention, room, onPoint = () => {}) {
  const { source, target, levels, unknown, scale } = attention;
  const size = cellSize(attention, room);
  const readout = el('output', { class: 'readout', 'aria-live': 'polite' }, 'Point at a cell, or use the arrow keys.');
  const canvas = el('canvas', {
    tabindex: '0',
    role: 'application',
    'aria-roledescription': 'attention map',
    'aria-label': `Attention: ${target.length} target tokens (rows) by ${source.length} source tokens (columns). Arrow keys read single weights.`,
  });
  canvas.style.width = `${source.length * size}px`;
  canvas.style.height = `${target.length * size}px`;
  let cursor = null;
  const draw = () => drawMap(canvas, attention, size, cursor);
  const point = (cell) => {
    grid.querySelectorAll('.pointed').forEach((label) => label.classList.remove('pointed'));
    if (cell) ['.map-left', '.map-top'].forEach((axis, i) => grid.querySelector(axis).children[cell[i]].classList.add('pointed'));
    onPoint(cell);
  };
  const read = (t, s) => {
    cursor = [Math.max(0, Math.min(target.length - 1, t)), Math.max(0, Math.min(source.length - 1, s))];
    const weight = (levels[cursor[0] * source.length + cursor[1]] / 255) * scale;
    readout.replaceChildren(words(target[cursor[0]]), ' looks at ', words(source[cursor[1]]), `: ${weight.toFixed(2)}`);
    draw();
    point(cursor);
  };
  const pointer = (event) => {
    const box = canvas.getBoundingClientRect();
    read(Math.floor((event.clientY - box.top) / size), Math.floor((event.clientX - box.left) / size));
  };
  const move = (event) => {
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [];
    if (down === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    if (cursor) read(cursor[0] + down, cursor[1] + right);
    else read(0, 0);
    keepInSight(grid, cursor, size);
  };
  const leave = () => point(null);
  fill(canvas, { onpointermove: pointer, onpointerdown: pointer, onpointerleave: leave, onblur: leave, onkeydown: move }, []);
  const grid = el('div', { class: 'map-grid', role: 'group', 'aria-label': 'Attention map' },
    el('div', { class: 'map-corner', 'aria-hidden': 'true' }, 'target ↓ source →'),
    labels('top', source, size, unknown), labels('left', target, size), canvas);
  const legend = unknown.length ? el('span', {}, el('span', { class: 'unknown' }, 'italic'), ': unknown to this run') : '';
  const view = el('div', { class: 'map' }, grid, el('div', { class: 'map-foot' }, scaleBar(), legend, readout));
  view.redraw = () => {
    draw();
    view.querySelector('.scale').replaceWith(scaleBar());
  };
  draw();
  return view;
}

// The labels stick to the edges and hide cells under them: scroll until the cell is visible.
function keepInSight(grid, [t, s], size) {
  const [left, top] = [grid.querySelector('.map-left').offsetWidth, grid.querySelector('.map-top').offsetHeight];
  const [x, y] = [s * size, t * size];
  if (x < grid.scrollLeft) grid.scrollLeft = x;
  if (x + size + left > grid.scrollLeft + grid.clientWidth) grid.scrollLeft = x + size + left - grid.clientWidth;
  if (y < grid.scrollTop) grid.scrollTop = y;
  if (y + size + top > grid.scrollTop + grid.clientHeight) grid.scrollTop = y + size + top - grid.clientHeight;
}

function scaleBar() {
  const canvas = el('canvas', { class: 'bar', width: 128, height: 8, 'aria-hidden': 'true' });
  const pen = canvas.getContext('2d');
  mapColors().forEach((color, level) => {
    pen.fillStyle = color;
    pen.fillRect(level / 2, 0, 1, 8);
  });
  return el('span', { class: 'scale' }, 'weight 0', canvas, '1');
}
