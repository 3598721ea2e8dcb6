// Learning curves: the scores of the validations of each run over the updates.
const CURVES = [['BLEU', 1, false], ['perplexity', 2, true]]; // title, index in a validation, whether the axis is logarithmic

// Marks of a logarithmic axis: 1, 2 and 5 times the powers of ten, from below the least value to above the greatest
// value; if these are too many, only the powers of ten. Values are at least 1.
function logTicks(least, greatest) {
  const decades = Math.ceil(Math.log10(greatest)) + 1;
  const factors = decades - Math.floor(Math.log10(least)) > 4 ? [1] : [1, 2, 5];
  const all = Array.from({ length: decades + 1 }, (_, power) => factors.map((factor) => factor * 10 ** power)).flat();
  const first = all.findLastIndex((tick) => tick <= least);
  const last = all.findIndex((tick, i) => tick >= greatest && i > first);
  return all.slice(first, last + 1).map((value) => ({ value, label: value.toLocaleString('en', { notation: 'compact' }) }));
}

// About `count` round numbers from 0 to `most`.
const roundTicks = (most, count) => ticksTo(most, count).map(({ value }) => value).filter((value) => value <= most);

// series: [{run (its style), name, points: [[update, value]]}]
function drawCurves(width, { series, label, isLog }) {
  const [left, right, top, height, bottom] = [44, 26, 12, heightOf(width), 44];
  const points = series.flatMap((one) => one.points);
  const values = points.map(([, value]) => value);
  const ticks = isLog ? logTicks(Math.min(...values), Math.max(...values)) : ticksTo(Math.max(...values) || 1);
  const scale = isLog ? Math.log : Number;
  const [low, high] = [ticks[0], ticks[ticks.length - 1]].map(({ value }) => scale(value));
  const most = Math.max(1, ...points.map(([update]) => update));
  const x = (update) => left + (update * (width - left - right)) / most;
  const y = (value) => top + height * (1 - (scale(value) - low) / (high - low));
  return chartFrame(width, top + height + bottom, label,
    gridLines(ticks, left, width - right, y),
    roundTicks(most, Math.max(2, Math.floor(width / 110))).map((value) =>
      svg('text', { class: 'tick strong', x: x(value), y: top + height + 20, 'text-anchor': 'middle' }, integer(value))),
    svg('text', { class: 'tick', x: width - right, y: top + height + 38, 'text-anchor': 'end' }, `updates${isLog ? '; vertical axis logarithmic' : ''}`),
    series.map(({ run, name, points: of }) => [
      polyline(run, of.map(([update, value]) => `${x(update)},${y(value)}`)),
      of.map(([update, value]) =>
        svg('g', {}, svg('title', {}, `${name}, update ${integer(update)}: ${fixed(value)}`), marker(run, x(update), y(value), of.length > 30 ? 2 : 4))),
    ]));
}

function curveFigure([title, index, isLog]) {
  const series = data.runs.map(({ name, validations }, run) => ({
    run: styleOf(run),
    name,
    points: validations.filter((one) => one[index] !== null && (!isLog || one[index] >= 1)).map((one) => [one[0], one[index]]),
  })).filter(({ points }) => points.length);
  if (!series.length) return '';
  const label = `Validation ${title} over the updates of training: ` +
    series.map(({ name, points }) => `${name} ends at ${fixed(points[points.length - 1][1])}`).join(', ');
  const key = arms().map(({ name }, run) => ({ run, name })).filter(({ run }) => series.some((one) => one.run === run));
  return chartFigure(`Validation ${title}`, { series, key, label, isLog }, drawCurves);
}

function curveContent() {
  const figures = CURVES.map(curveFigure).filter(Boolean);
  if (!figures.length) return null;
  const without = data.runs.filter((run) => hasConfig(run) && !run.validations.length);
  return [
    el('div', { class: 'plots' }, figures),
    note('Measured on validation sentences during training. Perplexities compare only runs with the same target tokens.',
      isGrouped() ? ' Each seed has a line of its own.' : ''),
    without.map(({ name }) => note('No learning curve of ', words(name), ': its metrics.jsonl holds no validation.')),
  ];
}
