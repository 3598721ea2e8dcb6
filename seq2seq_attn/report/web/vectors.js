// Sentence vectors: each run's sentences on two axes, and what lies nearest to the chosen one in all dimensions.
// A sentence is meant by its place among the sentences that were packed; places are the same in every run.
const space = { selected: -1, views: [], names: new Set() };
const LEVELS = 8; // colors of length
const REACH = 28; // pixels from which a pointer takes a point

const vectorRow = (place) => data.vectors.rows[place];
const isInSet = (place) => space.names.has(places[vectorRow(place)].set);

const levelOf = (bucket, count) => (count < 2 ? LEVELS / 2 : Math.round((bucket * (LEVELS - 1)) / (count - 1)));

function lengthLevel(row) {
  const { buckets } = shownSet();
  const length = data.sentences.length[row];
  return levelOf(Math.max(0, buckets.findIndex(({ lower, upper }) => length >= lower && (upper === null || length < upper))), buckets.length);
}

// Round numbers between two ends, some `count` of them.
function ticksBetween(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const unit = [1, 2, 5, 10].find((factor) => factor * power >= rough) * power;
  const digits = Math.max(0, -Math.floor(Math.log10(unit) + 1e-9));
  const first = Math.ceil(low / unit);
  return Array.from({ length: Math.floor(high / unit) - first + 1 }, (_, i) => {
    const value = (first + i) * unit;
    return { value, label: `${value < 0 && Number(value.toFixed(digits)) ? '−' : ''}${Math.abs(value).toFixed(digits)}` };
  });
}

// Where things lie in a picture of a width: both axes in the same unit, the points in the middle.
function frameOf(points, width) {
  const [left, right, top, bottom] = [58, 8, 8, 48];
  const height = Math.round(Math.max(240, Math.min(400, width * 0.85)));
  const [room, drop] = [width - left - right, height - top - bottom];
  const ends = [0, 1].map((axis) => points.reduce(([low, high], of) => [Math.min(low, of[axis]), Math.max(high, of[axis])], [Infinity, -Infinity]));
  const scale = Math.min(...ends.map(([low, high], axis) => ([room, drop][axis] * 0.94) / Math.max(high - low, 1e-6)));
  const middle = ends.map(([low, high]) => (low + high) / 2);
  return {
    width, height, left, right, top, bottom,
    x: (value) => left + room / 2 + (value - middle[0]) * scale,
    y: (value) => top + drop / 2 - (value - middle[1]) * scale,
    ends: [[middle[0] - room / 2 / scale, middle[0] + room / 2 / scale], [middle[1] - drop / 2 / scale, middle[1] + drop / 2 / scale]],
  };
}

const axisTitle = (order, share, room) =>
  `${order} component, ${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %${room < 230 ? '' : ' of the variance'}`;

function drawAxes({ width, height, left, right, top, bottom, x, y, ends }, shares) {
  const [foot, end] = [height - bottom, width - right];
  const middle = (top + foot) / 2;
  return [
    ticksBetween(...ends[0], Math.max(6, Math.floor(width / 90))).map(({ value, label }) => [
      svg('line', { class: 'grid', x1: x(value), x2: x(value), y1: top, y2: foot }),
      svg('text', { class: 'tick', x: x(value), y: foot + 18, 'text-anchor': 'middle' }, label),
    ]),
    ticksBetween(...ends[1], 5).map(({ value, label }) => [
      svg('line', { class: 'grid', x1: left, x2: end, y1: y(value), y2: y(value) }),
      svg('text', { class: 'tick', x: left - 8, y: y(value) + 4, 'text-anchor': 'end' }, label),
    ]),
    svg('text', { class: 'tick', x: (left + end) / 2, y: height - 6, 'text-anchor': 'middle' }, axisTitle('first', shares[0], end - left)),
    svg('text', { class: 'tick', x: 0, y: 0, 'text-anchor': 'middle', transform: `translate(13 ${middle}) rotate(-90)` }, axisTitle('second', shares[1], foot - top)),
  ];
}

// The picture of one run; `show` marks the selected sentence, its neighbors, and the one that is looked at.
function spaceView(run) {
  const { points, shares, nearest, cosines, size } = data.vectors.runs[run];
  const view = { run, cursor: -1, frame: null, node: null };
  const plot = el('div', { class: 'plot space-plot' });
  const readout = el('output', { class: 'space-readout', 'aria-live': 'polite' });
  const near = el('div', { class: 'near' });
  const at = (place) => [view.frame.x(points[place][0]), view.frame.y(points[place][1])];

  view.draw = (width) => {
    view.frame = frameOf(points, width);
    const label = `${points.length} sentences of ${data.runs[run].name} on the two axes of largest variance. Arrow keys go from sentence to ` +
      'sentence, Enter lists the nearest ones.';
    const dots = points.map((_, place) => {
      const [cx, cy] = at(place);
      return svg('circle', { class: `dot level-${lengthLevel(vectorRow(place))}${isInSet(place) ? '' : ' off'}`, cx, cy, r: width < 480 ? 2.6 : 3.2 });
    });
    view.marks = svg('g', { class: 'marks' });
    const { height } = view.frame;
    view.node = svg('svg', { class: 'chart space', width, height, viewBox: `0 0 ${width} ${height}`, tabindex: '0', role: 'application',
        'aria-roledescription': 'scatter plot', 'aria-label': label },
      drawAxes(view.frame, shares), dots, view.marks);
    listen(view, points, at);
    plot.replaceChildren(view.node);
    view.show();
  };

  view.show = () => {
    const { selected } = space;
    const looked = view.cursor >= 0 ? view.cursor : selected;
    const ring = (place, kind, r) => svg('circle', { class: `ring ${kind}`, cx: at(place)[0], cy: at(place)[1], r });
    if (view.frame) {
      const links = selected < 0 ? [] : [
        nearest[selected].map((place) => svg('line', { class: 'tie', x1: at(selected)[0], y1: at(selected)[1], x2: at(place)[0], y2: at(place)[1] })),
        nearest[selected].map((place) => ring(place, 'neighbor', 5)),
        ring(selected, 'selected', 7),
      ];
      view.marks.replaceChildren(...[links, view.cursor >= 0 ? ring(view.cursor, 'cursor', 7) : []].flat(Infinity));
    }
    readout.replaceChildren(...(looked < 0 ? [] : spaceSentence(looked)));
  };
  view.list = () => near.replaceChildren(space.selected < 0 ? '' : nearTable(view, nearest[space.selected], cosines[space.selected]));

  let width = 0;
  new ResizeObserver(([entry]) => {
    const now = Math.floor(entry.contentRect.width);
    if (!now || now === width) return;
    width = now;
    view.draw(width);
  }).observe(plot);
  view.redraw = () => width && view.draw(width);
  view.figure = el('figure', { class: 'space-figure', 'data-run': run },
    el('figcaption', {}, el('h3', {}, runLabel(run, data.runs[run].name), el('span', { class: 'quiet' }, ` ${integer(size)} dimensions`))), plot, readout, near);
  return view;
}

function spaceSentence(place) {
  const row = vectorRow(place);
  const { set, number } = places[row];
  return [
    el('span', { class: 'quiet' }, `Sentence ${integer(number)}${data.sentences.sets.length > 1 ? `, ${set}` : ''}, length ${data.sentences.length[row]}`),
    words(data.sentences.source[row], { class: 'clamp' }),
    words(data.sentences.reference[row], { class: 'clamp quiet' }),
  ];
}

function nearTable(view, neighbors, cosines) {
  const title = `Nearest to sentence ${integer(places[vectorRow(space.selected)].number)}, ${data.runs[view.run].name}`;
  const rows = neighbors.map((place, i) => {
    const row = vectorRow(place);
    return el('tr', {}, el('td', { class: 'number' }, (cosines[i] / 100).toFixed(2).replace('-', '−')),
      el('td', { class: 'number' }, String(data.sentences.length[row])),
      el('td', {}, el('button', { type: 'button', class: 'plain', onclick: () => selectSentence(place, view) }, words(data.sentences.source[row], { class: 'clamp' })),
        words(data.sentences.reference[row], { class: 'clamp quiet' })));
  });
  return el('table', { class: 'near-table' }, el('caption', { class: 'hidden' }, title),
    el('thead', {}, el('tr', {}, ['Cosine', 'Length', 'Nearest sentences'].map((head) => el('th', { scope: 'col' }, head)))), el('tbody', {}, rows));
}

function listen(view, points, at) {
  const look = (place) => {
    if (view.cursor === place) return;
    view.cursor = place;
    view.show();
  };
  const closest = (x, y, reach) => {
    let [best, least] = [-1, reach];
    points.forEach((_, place) => {
      const distance = Math.hypot(at(place)[0] - x, at(place)[1] - y);
      if (distance < least && isInSet(place)) [best, least] = [place, distance];
    });
    return best;
  };
  const pointed = (event) => {
    const box = view.node.getBoundingClientRect();
    return closest(event.clientX - box.left, event.clientY - box.top, REACH);
  };
  view.node.addEventListener('pointermove', (event) => look(pointed(event)));
  view.node.addEventListener('pointerleave', () => look(-1));
  view.node.addEventListener('blur', () => look(-1));
  view.node.addEventListener('click', (event) => {
    const place = pointed(event);
    if (place >= 0) selectSentence(place);
  });
  view.node.addEventListener('keydown', (event) => {
    const move = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] }[event.key];
    const isChoice = event.key === 'Enter' || event.key === ' ';
    if (!move && !isChoice) return;
    event.preventDefault();
    const from = view.cursor >= 0 ? view.cursor : space.selected;
    if (isChoice && from >= 0) selectSentence(from);
    else if (from < 0) look(closest(view.frame.width / 2, view.frame.height / 2, Infinity));
    else if (move) look(nextPoint(points, at, from, move));
  });
}

// The closest point on that side, those straight ahead first.
function nextPoint(points, at, from, [right, down]) {
  const [x, y] = at(from);
  let [best, least] = [from, Infinity];
  points.forEach((_, place) => {
    const [dx, dy] = [at(place)[0] - x, at(place)[1] - y];
    const [ahead, aside] = [dx * right + dy * down, Math.abs(dx * down) + Math.abs(dy * right)];
    if (ahead <= 0 || aside > ahead || ahead + 2 * aside >= least || !isInSet(place)) return;
    [best, least] = [place, ahead + 2 * aside];
  });
  return best;
}

// `from`: the view whose list the sentence was chosen in, where the keyboard stays.
function selectSentence(place, from) {
  space.selected = place;
  space.views.forEach((view) => {
    view.show();
    view.list();
  });
  if (from) from.node.focus({ preventScroll: true });
}

function lengthKey() {
  const { buckets } = shownSet();
  return [
    el('li', {}, `length in ${data.unit}`),
    buckets.map((bucket, i) => el('li', { class: 'run' },
      svg('svg', { class: 'swatch', width: 10, height: 10, 'aria-hidden': 'true' },
        svg('circle', { class: `dot level-${levelOf(i, buckets.length)}`, cx: 5, cy: 5, r: 4.5 })), shortLabel(bucket))),
  ].flat();
}

function renderVectors() {
  if (!space.views.length) return;
  space.names = new Set(shownNames());
  element('length-key').replaceChildren(...lengthKey());
  if (space.selected < 0 || !isInSet(space.selected)) space.selected = data.vectors.rows.findIndex((_, place) => isInSet(place));
  space.views.forEach((view) => {
    view.cursor = -1;
    view.redraw();
    view.show();
    view.list();
  });
}

function vectorContent() {
  if (!data.vectors || !data.vectors.rows.length) return null;
  const shown = data.runs.map((_, run) => run).filter((run) => data.vectors.runs[run]);
  const firsts = arms().map((arm) => arm.runs[0]);
  const without = data.runs.filter((run, i) => hasConfig(run) && !data.vectors.runs[i] && firsts.includes(run.name));
  space.views = shown.map(spaceView);
  const { length: count } = data.vectors.rows;
  const part = count < places.length ? `${integer(count)} of the ${integer(places.length)} source sentences, evenly spaced` : `${integer(count)} source sentences`;
  return [
    el('p', { class: 'note' }, `${part}: for each the encoder’s last states, which are all that a decoder with one fixed vector sees of it, ` +
      'on the two axes along which they differ most (PCA; Sutskever et al. 2014, Fig. 2). Point at a sentence to read it, click it, or press ' +
      'Enter, to list its nearest ones by cosine in all dimensions.'),
    isGrouped() ? el('p', { class: 'note' }, 'Of each arm its first run.') : '',
    without.map((run) => el('p', { class: 'note' }, 'No sentence vectors of ', words(run.name), ': its translations were taken from files.')),
    el('ul', { class: 'key', id: 'length-key' }),
    el('div', { class: 'plots' }, space.views.map((view) => view.figure)),
  ];
}
