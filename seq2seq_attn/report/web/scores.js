// Scores of the chosen test set: the headline, every measure, the runs against the first, and all of it by length.
const chosen = { set: 0, measure: '' };

const shownSet = () => data.report.sets[chosen.set];
const runOf = (measure, run) => measure.runs[run];
const named = (list, name) => list.find((one) => one.name === name);
const baseline = () => data.runs[0].name;

function headline() {
  const [measure] = shownSet().measures;
  const title = data.titles[measure.name];
  return el(
    'ul',
    { class: 'headline', id: 'headline' },
    measure.runs.map((one, run) =>
      el(
        'li',
        {},
        runLabel(run, one.run),
        el('p', { class: 'big' }, el('span', {}, fixed(one.score)), el('small', {}, ` ${title}`)),
        el('p', { class: 'quiet' }, `95 % interval ${interval(one)}`),
        one.paired_bootstrap
          ? el('p', { class: 'quiet' }, `${signed(one.paired_bootstrap.difference)} against `, words(baseline()),
              `, p ${pValue(one.paired_bootstrap.p_value)}`)
          : '',
      ),
    ),
  );
}

const scoreCell = (one) =>
  el('td', { class: 'number' }, el('strong', {}, fixed(one.score)), el('span', { class: 'quiet' }, interval(one)));

function scoreTable() {
  const rows = shownSet().measures.map((measure) =>
    el('tr', { 'data-measure': measure.name }, el('th', { scope: 'row' }, data.titles[measure.name]), measure.runs.map(scoreCell)),
  );
  return tableOf('Scores', ['Measure', ...data.runs.map((run, i) => runLabel(i, run.name))], rows, { id: 'score-table' });
}

const comparisonCells = (one) => [
  el('td', { class: 'number' }, el('strong', {}, signed(one.paired_bootstrap && one.paired_bootstrap.difference))),
  el('td', { class: 'number' }, one.paired_bootstrap ? pValue(one.paired_bootstrap.p_value) : '–'),
  el('td', { class: 'number' }, one.paired_randomization ? pValue(one.paired_randomization.p_value) : '–'),
  el('td', { class: 'number' },
    one.retention ? [el('strong', {}, fixed(one.retention.value, 2)), el('span', { class: 'quiet' }, interval(one.retention, 2))] : '–'),
];
const COMPARISON = ['Difference', 'p, bootstrap', 'p, randomization', 'Share kept'];

function significanceTable() {
  const rows = data.runs.slice(1).map((of, i) =>
    shownSet().measures.map((measure) =>
      el('tr', {}, el('th', { scope: 'row' }, runLabel(i + 1, of.name)), el('td', {}, data.titles[measure.name]),
        comparisonCells(runOf(measure, i + 1))),
    ),
  );
  return tableOf(`Against ${baseline()}`, ['Run', 'Measure', ...COMPARISON], rows, { id: 'significance-table' });
}

// What to know of the translations before their scores are trusted.
const translationNotes = () =>
  (shownSet().translations || []).flatMap(({ run, num_cut: cut, num_unknown_source_tokens: unknown }) => [
    cut ? el('p', { class: 'note' }, words(run), `: the length limit cut ${integer(cut)} of ${integer(shownSet().num_pairs)} translations; --max-length-ratio raises it.`) : '',
    unknown ? el('p', { class: 'note' }, words(run), ` does not know ${integer(unknown)} source token${unknown === 1 ? '' : 's'}.`) : '',
  ]);

function scoreContent() {
  const several = data.runs.length > 1;
  const count = el('p', { class: 'quiet' }, `${shownSet().name}: ${integer(shownSet().num_pairs)} sentence pairs`);
  if (arms().length) return [armHeadline(), count, translationNotes(), armTable(), armNote(), perRun(runScores(several))];
  return [headline(), count, translationNotes(), runScores(several)];
}

function runScores(several) {
  return [
    scoreTable(),
    several ? [el('h3', {}, 'Against ', words(baseline())), significanceTable()] : '',
    several
      ? el('p', { class: 'note' }, 'p: how often chance alone makes a difference as large, by paired bootstrap and by approximate ' +
          `randomization. Share kept: the score as a share of that of ${baseline()}, with its paired 95 % interval.`)
      : '',
  ];
}

function lengthMeasures() {
  const { buckets } = shownSet();
  return buckets.length ? buckets[0].measures.map((measure) => measure.name) : [];
}

function lengthChart() {
  const { buckets } = shownSet();
  const series = arms().length ? armSeries(meanPoint) : data.runs.map(({ name }, run) => ({
    run: styleOf(run),
    name,
    points: buckets.map((bucket) => {
      const { score: value, low, high } = runOf(named(bucket.measures, chosen.measure), run);
      return { value, low, high };
    }),
  }));
  const title = `${data.titles[chosen.measure]} by length`;
  const label = `${title}; the numbers are in the table below`;
  return chartFigure(title, { buckets, series, unit: `length in ${data.unit}; n sentence pairs`, label });
}

function retentionChart() {
  const { buckets } = shownSet();
  const series = arms().length ? armSeries(keptPoint).slice(1) : data.runs.slice(1).map(({ name }, i) => ({
    run: styleOf(i + 1),
    name,
    points: buckets.map((bucket) => runOf(named(bucket.measures, chosen.measure), i + 1).retention || null),
  }));
  const title = `Share of the ${data.titles[chosen.measure]} of ${(arms()[0] || data.runs[0]).name} kept`;
  const label = `${title}, by length; the numbers are in the table below`;
  return chartFigure(title, { buckets, series, unit: `length in ${data.unit}; n sentence pairs`, label, rule: 1 });
}

function lengthTable() {
  const { buckets, measures, num_pairs } = shownSet();
  const rows = [...buckets, { label: 'all', num_pairs, measures }].map((bucket) => {
    const { runs } = named(bucket.measures, chosen.measure);
    return el(
      'tr',
      { class: bucket.is_thin ? 'thin' : '' },
      el('th', { scope: 'row' }, bucket.label + (bucket.is_thin ? '*' : '')),
      el('td', { class: 'number' }, integer(bucket.num_pairs)),
      runs.map((one, run) => [scoreCell(one), run ? comparisonCells(one) : '']),
    );
  });
  const header = data.runs.map(({ name }, run) => [runLabel(run, name), ...(run ? COMPARISON : [])]);
  const title = `${data.titles[chosen.measure]} by length`;
  return tableOf(title, [`Length in ${data.unit}`, 'n', ...header.flat()], rows, { id: 'length-table' });
}

function lengthContent() {
  const names = lengthMeasures();
  if (!names.length) return [el('p', { class: 'note' }, 'No measure of this evaluation is cut by length.')];
  if (!names.includes(chosen.measure)) [chosen.measure] = names;
  const choice = names.map((name) => el('option', { value: name, selected: name === chosen.measure }, data.titles[name]));
  const change = (event) => {
    chosen.measure = event.target.value;
    renderLength();
    element('measure').focus();
  };
  const isThin = shownSet().buckets.some((bucket) => bucket.is_thin);
  return [
    el('p', { class: 'control' }, el('label', { for: 'measure' }, 'Measure'), el('select', { id: 'measure', onchange: change }, choice)),
    el('div', { class: 'plots' }, lengthChart(), (arms().length || data.runs.length) > 1 ? retentionChart() : ''),
    arms().length ? [armLengthTable(), armNote(), perRun(lengthTable())] : lengthTable(),
    isThin ? el('p', { class: 'note' }, '* fewer than 50 sentence pairs: mostly noise') : '',
  ];
}

const renderScores = () => element('scores-content').replaceChildren(...scoreContent().flat(Infinity).filter(Boolean));
const renderLength = () => element('length-content').replaceChildren(...lengthContent().flat(Infinity).filter(Boolean));
