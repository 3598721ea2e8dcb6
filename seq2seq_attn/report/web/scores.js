// Scores of the chosen test set: the headline, all measures, comparisons with the first arm, and scores by length.
const chosen = { set: 0, measure: '' };

const shownSet = () => data.report.sets[chosen.set];
const named = (list, name) => list.find((one) => one.name === name);

// An arm is a group of runs that differ only in their seed. If there are no such groups, each run is an arm.
const isGrouped = () => Boolean(data.report.groups);
const arms = () => data.report.groups || data.runs.map(({ name }) => ({ name, runs: [name] }));

// The columns of tables and the lines of charts: names, scores by a measure, line styles.
const byRun = () => ({ kind: 'Run', prefix: '', names: data.runs.map(({ name }) => name), scores: (measure) => measure.runs, style: styleOf });
const byArm = () => (isGrouped()
  ? { kind: 'Arm', prefix: 'arm-', names: arms().map(({ name }) => name), scores: (measure) => measure.groups, style: (arm) => arm }
  : byRun());
const columnLabels = (view) => view.names.map((name, i) => styleLabel(view.style(i), name));

const deviation = (one, digits) => (one.num_seeds > 1 ? ` ± ${fixed(one.standard_deviation, digits)}` : '');
const seedsOf = (one) => (one.num_seeds > 1 ? `${one.num_seeds} seeds, ${fixed(one.min)} to ${fixed(one.max)}` : 'one seed');

const pOf = ({ p_corrected: p }) => (p === null ? '' : `, p ${pValue(p)}`);
function headline(view) {
  const [measure] = shownSet().measures;
  const names = columnLabels(view);
  return el('ul', { class: 'headline', id: 'headline' }, view.scores(measure).map((one, i) =>
    el('li', {}, names[i],
      el('p', { class: 'big' }, el('span', {}, fixed(one.score)), el('small', {}, `${deviation(one)} ${data.titles[measure.name]}`)),
      el('p', { class: 'quiet' }, `95 % interval ${interval(one)}`),
      one.num_seeds ? el('p', { class: 'quiet' }, seedsOf(one)) : '',
      one.paired_bootstrap
        ? el('p', { class: 'quiet' }, `${signed(one.paired_bootstrap.difference)} against `, words(view.names[0]), pOf(one.paired_bootstrap))
        : '')));
}

const quietInterval = (one, digits) => el('span', { class: 'quiet' }, interval(one, digits));
const scoreCell = (one) => numberCell(el('strong', {}, fixed(one.score) + deviation(one)), quietInterval(one));

function scoreTable(view) {
  const rows = shownSet().measures.map((measure) =>
    el('tr', { 'data-measure': measure.name }, el('th', { scope: 'row' }, data.titles[measure.name]), view.scores(measure).map(scoreCell)));
  return tableOf('Scores', ['Measure', ...columnLabels(view)], rows, { id: `${view.prefix}score-table` });
}

function seedsTable(view) {
  const rows = shownSet().measures.map((measure) => view.scores(measure).map((one, arm) =>
    el('tr', { 'data-measure': measure.name },
      arm ? '' : groupCell('th', view.names.length, data.titles[measure.name]),
      whoCell(styleLabel(arm, one.arm)),
      numberCell(String(one.num_seeds)),
      numberCell(el('strong', {}, fixed(one.score)), quietInterval(one)),
      numberCell(fixed(one.standard_deviation, 2)),
      numberCell(one.num_seeds > 1 ? `${fixed(one.min)} – ${fixed(one.max)}` : '–'))));
  return tableOf('Arms: means over seeds', ['Measure', 'Arm', 'Seeds', 'Mean', 'Deviation', 'Min – max'], rows, { id: 'arm-table' });
}

// Columns of a comparison with the first arm: the title, the value that the column needs, and a function that shows it.
const COMPARISON = [
  ['Difference', 'paired_bootstrap', ({ difference }) => el('strong', {}, signed(difference))],
  ['p', 'paired_bootstrap', ({ p_corrected }) => pValue(p_corrected)],
  ['Share kept', 'retention', (kept) => [el('strong', {}, fixed(kept.value, 2)), quietInterval(kept, 2)]],
];
const comparisonsOf = (view) =>
  COMPARISON.filter(([, key]) => shownSet().measures.some((measure) => view.scores(measure).some((one) => one[key])));
const comparisonTitles = (view) => comparisonsOf(view).map(([title]) => title);
const comparisonCells = (view, one) => comparisonsOf(view).map(([, key, show]) => numberCell(one[key] ? show(one[key]) : '–'));

function significanceTable(view) {
  const [first, ...others] = view.names;
  const rows = others.map((name, i) => shownSet().measures.map((measure) =>
    el('tr', {}, el('th', { scope: 'row' }, data.titles[measure.name]), whoCell(styleLabel(view.style(i + 1), name)),
      comparisonCells(view, view.scores(measure)[i + 1]))));
  return tableOf(`Against ${first}`, ['Measure', view.kind, ...comparisonTitles(view)], rows, { id: `${view.prefix}significance-table` });
}

const measureNotes = () => note(shownSet().measures.map(({ name }) => [el('strong', {}, data.titles[name]), `: ${data.about[name]}. `]));

// Warnings about the test set and the translations.
const setNotes = () => (shownSet().warnings || []).map((warning) => note(`${shownSet().name}: ${warning}.`));
const translationNotes = () =>
  (shownSet().translations || []).flatMap(({ run, num_cut: cut, num_unknown_source_tokens: unknown }) => [
    cut ? note(words(run), `: the length limit cut ${integer(cut)} of ${integer(shownSet().num_pairs)} translations; --max-length-ratio raises it.`) : '',
    unknown ? note(words(run), ` does not know ${integer(unknown)} source token${unknown === 1 ? '' : 's'}.`) : '',
  ]);

const armNote = () => note('An arm is its runs together: they differ in the seed alone. ± and deviation: standard deviation ' +
  'over seeds. Intervals are of the mean, over sentences; p covers seeds and sentences.');
// The scores of each run of the arms, in a part that is closed at first.
const perRun = (...content) => el('details', {}, el('summary', {}, `Each of the ${data.runs.length} runs by itself`), content);

const coverage = ({ kind, names }) => `it covers ${kind === 'Arm' ? 'seeds and sentences' : 'the choice of sentences, not the seeds'}` +
  `${names.length > 2 ? `, with Holm's correction for ${names.length - 1} comparisons` : ''}; `;

function comparison(view) {
  if (view.names.length < 2) return [];
  return [
    el('h3', {}, 'Against ', words(view.names[0])),
    significanceTable(view),
    note('p: how often chance alone makes a difference as large, by paired bootstrap; ' +
      `${coverage(view)}of fewer than 50 sentence pairs there is none. Share kept: the score as a share of that of ${view.names[0]}, ` +
      'with its paired 95 % interval over sentences.'),
  ];
}

function scoreContent() {
  const [view, runs] = [byArm(), byRun()];
  const count = el('p', { class: 'quiet' }, `${shownSet().name}: ${integer(shownSet().num_pairs)} sentence pairs. The range after a score is its 95 % interval over sentences.`);
  const top = [headline(view), count, setNotes(), translationNotes()];
  if (!isGrouped()) return [...top, scoreTable(view), measureNotes(), comparison(view)];
  return [...top, seedsTable(view), measureNotes(), armNote(), comparison(view), perRun(scoreTable(runs), comparison(runs))];
}

// A line for each arm from index `first` on. `point` returns a value and its band from the scores of a bucket.
function seriesOf(view, first, point) {
  return view.names.slice(first).map((name, i) => ({
    run: view.style(i + first),
    name,
    points: shownSet().buckets.map((bucket) => point(view.scores(named(bucket.measures, chosen.measure)), i + first)),
  }));
}

// The lowest and the highest score of the seeds, in the unit of the point.
const extremes = ({ num_seeds: count, min, max }, unit = 1) => (count > 1 ? { least: min / unit, most: max / unit } : {});
const scorePoint = (scores, i) => ({ value: scores[i].score, low: scores[i].low, high: scores[i].high, ...extremes(scores[i]) });
const keptPoint = (scores, i) => scores[i].retention && { ...scores[i].retention, ...extremes(scores[i], scores[0].score) };

function chartByLength(title, series, rule) {
  const label = `${title}${rule ? ', by length' : ''}; the numbers are in the table below`;
  return chartFigure(title, { buckets: shownSet().buckets, series, unit: `length in ${data.unit}; n of ${integer(shownSet().num_pairs)} sentence pairs`, label, rule });
}

function lengthCharts(view) {
  const measure = data.titles[chosen.measure];
  const shares = seriesOf(view, 1, keptPoint);
  const charts = [chartByLength(`${measure} by length`, seriesOf(view, 0, scorePoint))];
  if (shares.some(({ points }) => points.some(Boolean))) charts.push(chartByLength(`Share of the ${measure} of ${view.names[0]} kept`, shares, 1));
  return charts;
}

function lengthTable(view) {
  const { buckets, measures, num_pairs } = shownSet();
  const rows = [...buckets, { label: 'all', num_pairs, measures }].map((bucket) =>
    el('tr', { class: bucket.is_thin ? 'thin' : '' },
      el('th', { scope: 'row' }, starred(bucket)), numberCell(integer(bucket.num_pairs)),
      view.scores(named(bucket.measures, chosen.measure)).map((one, i) => [scoreCell(one), i ? comparisonCells(view, one) : ''])));
  const header = columnLabels(view).map((label, i) => [label, ...(i ? comparisonTitles(view) : [])]);
  const title = `${data.titles[chosen.measure]} by length${view.prefix && ', means over seeds'}`;
  return tableOf(title, [`Length in ${data.unit}`, `n of ${integer(shownSet().num_pairs)}`, ...header.flat()], rows, { id: `${view.prefix}length-table` });
}

function lengthContent() {
  const names = (shownSet().buckets[0]?.measures ?? []).map(({ name }) => name);
  if (!names.length) return [note('No measure of this evaluation is cut by length.')];
  if (!names.includes(chosen.measure)) [chosen.measure] = names;
  const options = optionsOf(names.map((name) => [name, data.titles[name]]), chosen.measure);
  const change = (event) => {
    chosen.measure = event.target.value;
    renderLength();
    element('measure').focus();
  };
  const view = byArm();
  const isThin = shownSet().buckets.some((bucket) => bucket.is_thin);
  return [
    choice('measure', 'Measure', options, change),
    el('div', { class: 'plots' }, lengthCharts(view)),
    lengthTable(view),
    isGrouped() ? [armNote(), perRun(lengthTable(byRun()))] : '',
    isThin ? note('* and hollow points: fewer than 50 sentence pairs, mostly noise') : '',
  ];
}

const renderScores = () => refill(element('scores-content'), scoreContent());
const renderLength = () => refill(element('length-content'), lengthContent());
