// Arms: runs that differ in their seed alone, shown as one, with the mean of their scores and its spread.
const arms = () => data.report.groups || [];
const spreadOf = (one) => (one.standard_deviation === null ? '' : ` ± ${fixed(one.standard_deviation)}`);
const asComparison = ({ paired_bootstrap, retention }) => ({ paired_bootstrap, retention });
const ARM_COMPARISON = ['Difference', 'p, bootstrap', 'Share kept'];

function armComparisonCells(one) {
  const [difference, p, , kept] = comparisonCells(asComparison(one));
  return [difference, p, kept];
}

function armHeadline() {
  const [measure] = shownSet().measures;
  return el('ul', { class: 'headline', id: 'headline' }, measure.groups.map((one, arm) =>
    el('li', {}, styleLabel(arm, one.arm),
      el('p', { class: 'big' }, el('span', {}, fixed(one.mean)), el('small', {}, `${spreadOf(one)} ${data.titles[measure.name]}`)),
      el('p', { class: 'quiet' }, `95 % interval ${interval(one)}`),
      el('p', { class: 'quiet' }, one.num_seeds > 1 ? `${one.num_seeds} seeds, ${fixed(one.min)} to ${fixed(one.max)}` : 'one seed'),
      one.paired_bootstrap
        ? el('p', { class: 'quiet' }, `${signed(one.paired_bootstrap.difference)} against `, words(arms()[0].name), `, p ${pValue(one.paired_bootstrap.p_value)}`)
        : '')));
}

function armTable() {
  const rows = shownSet().measures.map((measure) => measure.groups.map((one, arm) =>
    el('tr', { 'data-measure': measure.name, 'data-arm': one.arm },
      arm ? '' : el('th', { scope: 'rowgroup', rowspan: measure.groups.length }, data.titles[measure.name]),
      el('td', {}, styleLabel(arm, one.arm)),
      el('td', { class: 'number' }, String(one.num_seeds)),
      el('td', { class: 'number' }, el('strong', {}, fixed(one.mean)), el('span', { class: 'quiet' }, interval(one))),
      el('td', { class: 'number' }, one.standard_deviation === null ? '–' : fixed(one.standard_deviation, 2)),
      el('td', { class: 'number' }, one.num_seeds > 1 ? `${fixed(one.min)} – ${fixed(one.max)}` : '–'),
      arm ? armComparisonCells(one) : ARM_COMPARISON.map(() => el('td')))));
  const header = ['Measure', 'Arm', 'Seeds', 'Mean', 'Deviation', 'Min – max', ...ARM_COMPARISON];
  return tableOf('Arms: means over seeds', header, rows, { id: 'arm-table' });
}

const armSeries = (point) => arms().map(({ name }, arm) => ({
  run: arm,
  name,
  points: shownSet().buckets.map((bucket) => point(named(bucket.measures, chosen.measure).groups, arm)),
}));
const meanPoint = (groups, arm) => {
  const { mean: value, low, high, min: least, max: most } = groups[arm];
  return { value, low, high, least, most };
};
const keptPoint = (groups, arm) => groups[arm].retention
  && { ...groups[arm].retention, least: groups[arm].min / groups[0].mean, most: groups[arm].max / groups[0].mean };

function armLengthTable() {
  const { buckets, measures, num_pairs } = shownSet();
  const rows = [...buckets, { label: 'all', num_pairs, measures }].map((bucket) =>
    el('tr', { class: bucket.is_thin ? 'thin' : '' },
      el('th', { scope: 'row' }, bucket.label + (bucket.is_thin ? '*' : '')),
      el('td', { class: 'number' }, integer(bucket.num_pairs)),
      named(bucket.measures, chosen.measure).groups.map((one, arm) => [
        el('td', { class: 'number' }, el('strong', {}, fixed(one.mean) + spreadOf(one)), el('span', { class: 'quiet' }, interval(one))),
        arm ? armComparisonCells(one) : '',
      ])));
  const header = arms().map(({ name }, arm) => [styleLabel(arm, name), ...(arm ? ARM_COMPARISON : [])]);
  const title = `${data.titles[chosen.measure]} by length, means over seeds`;
  return tableOf(title, [`Length in ${data.unit}`, 'n', ...header.flat()], rows, { id: 'arm-length-table' });
}

const armNote = () => el('p', { class: 'note' }, 'An arm is its runs together: they differ in the seed alone. ± and deviation: standard deviation ' +
  'over seeds. Intervals and p are of the mean, over sentences.');
// What every run did by itself, out of the way of the arms.
const perRun = (...content) => el('details', {}, el('summary', {}, `Each of the ${data.runs.length} runs by itself`), content);
