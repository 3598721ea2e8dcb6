// Draw lines with bands over length buckets, in the width of the page, and again when the width changes.
const shortLabel = ({ lower, upper }) => {
  if (upper === null) return lower > 0 ? `≥ ${lower}` : 'all';
  if (lower <= 0) return `≤ ${upper - 1}`;
  return upper - 1 > lower ? `${lower}–${upper - 1}` : `${lower}`;
};

// Multiples of a round number from 0 to the first that is not below `top`: about `wanted` of them.
function ticksTo(top, wanted = 5) {
  const power = 10 ** Math.floor(Math.log10(top / wanted));
  const unit = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= top / wanted) * power;
  const count = Math.ceil(top / unit - 1e-9);
  const digits = Math.max(0, -Math.floor(Math.log10(unit) + 1e-9), unit / power === 2.5 ? 1 - Math.log10(power) : 0);
  return Array.from({ length: count + 1 }, (_, i) => ({ value: i * unit, label: (i * unit).toFixed(digits) }));
}

const heightOf = (width) => (width < 480 ? 220 : 270);
const chartFrame = (width, height, label, ...children) =>
  svg('svg', { class: 'chart', width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': label }, children);

const gridLines = (ticks, from, to, y) => ticks.map(({ value, label }) => [
  svg('line', { class: 'grid', x1: from, x2: to, y1: y(value), y2: y(value) }),
  svg('text', { class: 'tick', x: from - 8, y: y(value) + 4, 'text-anchor': 'end' }, label),
]);

// series: [{run (its style), name, points: [{value, low, high} or null, one for each bucket]}]; the points of an
// arm also have the lowest and the highest value of its seeds
function drawChart(width, { buckets, series, unit, label, rule }) {
  const [left, right, top, height, bottom] = [44, 10, 12, heightOf(width), 56];
  const highest = Math.max(rule || 0, ...series.flatMap((one) => one.points.map((p) => (p ? Math.max(p.value, p.high, p.most || 0) : 0))));
  const ticks = ticksTo(highest > 0 ? highest : 1);
  const most = ticks.at(-1).value;
  const x = (index) => left + ((index + 0.5) * (width - left - right)) / buckets.length;
  const y = (value) => top + height * (1 - value / most);
  const every = Math.ceil((buckets.length * 48) / (width - left - right)); // so that labels do not overlap
  const axis = buckets.map((bucket, index) => index % every ? [] : [
    svg('text', { class: 'tick strong', x: x(index), y: top + height + 20, 'text-anchor': 'middle' }, shortLabel(bucket)),
    svg('text', { class: 'tick', x: x(index), y: top + height + 36, 'text-anchor': 'middle' },
      `${index ? '' : 'n '}${integer(bucket.num_pairs)}${bucket.is_thin ? '*' : ''}`),
  ]);
  return chartFrame(width, top + height + bottom, label,
    gridLines(ticks, left, width - right, y),
    axis,
    svg('text', { class: 'tick', x: width - right, y: top + height + 53, 'text-anchor': 'end' }, unit),
    rule ? svg('line', { class: 'rule', x1: left, x2: width - right, y1: y(rule), y2: y(rule) }) : '',
    series.map((one) => drawBand(one, x, y)),
    series.map((one) => drawLine(one, buckets, x, y)));
}

// Where a bucket has no value, the line has a gap.
function stretches(points) {
  const found = [[]];
  points.forEach((point, index) => (point ? found.at(-1).push({ ...point, index }) : found.push([])));
  return found.filter((stretch) => stretch.length);
}

const drawBand = ({ run, points }, x, y) =>
  stretches(points).map((stretch) => {
    const [over, under] = [stretch.map((p) => [x(p.index), y(p.high)]), stretch.map((p) => [x(p.index), y(p.low)])];
    if (stretch.length === 1) {
      return svg('line', { class: `whisker run-${run % 6}`, x1: over[0][0], x2: over[0][0], y1: over[0][1], y2: under[0][1] });
    }
    return svg('polygon', { class: `band run-${run % 6}`, points: [...over, ...under.toReversed()].map((p) => p.join()).join(' ') });
  });

const polyline = (run, points) =>
  svg('polyline', { class: `line run-${run % 6}`, 'stroke-dasharray': DASHES[run % 6], points: points.join(' ') });

const drawLine = ({ run, name, points }, buckets, x, y) =>
  stretches(points).map((stretch) => [
    polyline(run, stretch.map((p) => `${x(p.index)},${y(p.value)}`)),
    stretch.map((p) => {
      const digits = p.value < 2 && p.high < 2.5 ? 2 : 1;
      const isSpread = p.most > p.least;
      const seeds = isSpread ? `, seeds ${fixed(p.least, digits)} to ${fixed(p.most, digits)}` : '';
      const text = `${name}, ${shortLabel(buckets[p.index])}: ${fixed(p.value, digits)} [${fixed(p.low, digits)}, ${fixed(p.high, digits)}]${seeds}`;
      const bar = isSpread ? svg('line', { class: `seeds run-${run % 6}`, x1: x(p.index), x2: x(p.index), y1: y(p.least), y2: y(p.most) }) : '';
      return svg('g', {}, svg('title', {}, text), bar, svg('g', { class: buckets[p.index].is_thin ? 'hollow' : '' }, marker(run, x(p.index), y(p.value))));
    }),
  ]);

// A figure with the width of the element that contains it.
function chartFigure(title, chart, draw = drawChart) {
  const place = el('div', { class: 'plot' });
  let width = 0;
  new ResizeObserver(([entry]) => {
    const now = Math.floor(entry.contentRect.width);
    if (!now || now === width) return;
    width = now;
    place.replaceChildren(draw(width, chart));
  }).observe(place);
  const names = el('ul', { class: 'key' }, (chart.key || chart.series).map((one) => el('li', {}, styleLabel(one.run, one.name))));
  return el('figure', {}, el('figcaption', {}, el('h3', {}, title), names), place);
}
