// The words of a sentence and of its translation, with ribbons of attention between them.
const percent = (value) => `${Math.round(100 * value)} %`;
const wordButton = (token, key, classes, isPressed, onclick) =>
  el('button', { type: 'button', class: ['word', ...classes.filter(Boolean)].join(' '), 'data-key': key, 'aria-pressed': String(isPressed), onclick }, token);

// A row of words with a single tab stop. The arrow keys, Home and End move inside the row.
function wordRow(name, attributes, children) {
  const row = el('div', { role: 'group', 'aria-label': name, dir: 'auto', ...attributes }, children);
  const buttons = children.filter((child) => child.matches('.word'));
  const stopAt = (word) => buttons.forEach((button) => (button.tabIndex = button === word ? 0 : -1));
  row.addEventListener('focusin', (event) => stopAt(event.target));
  row.addEventListener('keydown', (event) => {
    const isLeftward = getComputedStyle(row).direction === 'rtl';
    const steps = { ArrowRight: isLeftward ? -1 : 1, ArrowLeft: isLeftward ? 1 : -1, Home: -buttons.length, End: buttons.length };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    buttons[Math.max(0, Math.min(buttons.length - 1, buttons.indexOf(event.target) + step))].focus();
  });
  stopAt(buttons[0]);
  return row;
}

// While the pointer or the focus is on a word, its ribbons are darker, and the words of the other row show their weights.
function light(figure, word, others, weights, isOwn) {
  const set = (isOn) => {
    figure.classList.toggle('pointing', isOn);
    for (const ribbon of figure.querySelectorAll('.ribbon')) ribbon.classList.toggle('on', isOn && isOwn(ribbon.dataset));
    others.forEach((other, index) => {
      other.classList.toggle('lit', isOn && weights[index] >= 0.1);
      if (isOn) other.title = percent(weights[index]);
      else other.removeAttribute('title');
    });
  };
  for (const event of ['pointerenter', 'focus']) word.addEventListener(event, () => set(true));
  for (const event of ['pointerleave', 'blur']) word.addEventListener(event, () => set(false));
}

const LEAST = 0.03; // the least weight that is drawn as a ribbon
function drawRibbons(figure, sources, targets, weights) {
  const origin = figure.getBoundingClientRect();
  const layer = svg('svg', { width: figure.scrollWidth, height: figure.scrollHeight, 'aria-hidden': 'true' });
  const middle = (node, side) => {
    const box = node.getBoundingClientRect();
    return [box.left + box.width / 2 - origin.left + figure.scrollLeft, box[side] - origin.top];
  };
  targets.forEach((target, t) => {
    const [x, y] = middle(target, 'top');
    sources.forEach((source, s) => {
      const weight = Math.min(1, weights[t][s]);
      if (weight < LEAST) return;
      const [a, b] = middle(source, 'bottom');
      const d = `M${a},${b} C${a},${(b + y) / 2} ${x},${(b + y) / 2} ${x},${y}`;
      const strength = { 'stroke-width': 1 + 5 * weight, 'stroke-opacity': 0.15 + 0.75 * weight };
      layer.append(svg('path', { class: 'ribbon', d, ...strength, 'data-source': s, 'data-target': t }));
    });
  });
  figure.prepend(layer);
}

// Numbers as colored stripes.
function strip(numbers, name) {
  const colorFor = (value) => `rgb(var(${value < 0 ? '--minus' : '--plus'}) / ${Math.min(1, Math.abs(value))})`;
  const stripes = Array.from(numbers, (value, x) => svg('rect', { x, width: 1, height: 1, fill: colorFor(value) }));
  const box = { viewBox: `0 0 ${numbers.length} 1`, preserveAspectRatio: 'none' };
  return svg('svg', { class: 'strip', ...box, role: 'img', 'aria-label': name }, stripes);
}

// The attention as a heat map. The words of the cell under the pointer are marked.
function heatMap(result, positions, sources, targets, room) {
  const weights = result.weights.flatMap((row) => [...row]);
  const scale = weights.reduce((a, b) => Math.max(a, b), 1); // more than 1 for attention whose weights do not sum to 1
  const levels = Uint8Array.from(weights, (weight) => Math.round((255 * weight) / scale));
  const unknown = [...result.unknown.keys()].filter((position) => result.unknown[position]);
  const pointAt = (cell) => {
    targets.forEach((target, t) => target.classList.toggle('lit', t === cell?.[0]));
    sources.forEach((source, s) => source.classList.toggle('lit', s === cell?.[1]));
  };
  return mapView({ source: positions, target: result.tokens, levels, unknown, scale }, room, pointAt);
}
