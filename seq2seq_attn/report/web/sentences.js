// The list of sentences, which readers filter and sort. A part of the list is shown at a time.
const PAGE = 50;
const list = { sort: 'number', descending: false, text: '', bucket: '', differing: false, shown: PAGE, rows: [] };

// The set of each sentence, and the number of the sentence in this set.
const places = [];

// The sets from which the chosen set is pooled, or the chosen set if it is not pooled.
function shownNames() {
  const { sets } = data.sentences;
  const { name, num_concatenated } = shownSet();
  return sets.some((one) => one.name === name) ? [name] : sets.filter((one) => one.num_concatenated === num_concatenated).map((one) => one.name);
}

function sentenceAt(row) {
  const { source, reference, length, hypotheses, chrf } = data.sentences;
  const byRuns = { hypotheses: hypotheses.map((of) => of[row]), chrf: chrf.map((of) => of[row]) };
  return { ...places[row], source: source[row], reference: reference[row], length: length[row], ...byRuns };
}

function placeSentences() {
  for (const { name, num_pairs: count } of data.sentences.sets) {
    for (let number = 1; number <= count; number++) places.push({ set: name, number });
  }
}

// The columns of chrF: arms with the mean of their runs, or all runs together if there are many arms.
const MAX_COLUMNS = 6;
function scoredColumns() {
  const all = data.runs.map((run, i) => i);
  const each = arms().map((arm) => ({ name: arm.name, members: all.filter((run) => arm.runs.includes(data.runs[run].name)) }));
  return each.length <= MAX_COLUMNS ? each : [{ name: 'all runs', members: all }];
}
const isMean = () => scoredColumns().some(({ members }) => members.length > 1);
const chrfOf = ({ members }, row) => members.reduce((sum, run) => sum + data.sentences.chrf[run][row], 0) / members.length;

// The columns with the chrF of each arm, and with its difference from the first arm.
function chrfColumns() {
  const scored = scoredColumns();
  const style = (i) => (scored.length > 1 ? i : undefined);
  const columns = scored.map((one, i) =>
    ({ key: `chrf-${i}`, title: 'chrF', style: style(i), name: one.name, format: fixed, value: (row) => chrfOf(one, row) }));
  if (scored.length > 3) return columns;
  const differences = scored.slice(1).map((one, i) => ({
    key: `difference-${i + 1}`,
    title: 'Δ chrF',
    style: scored.length > 2 ? i + 1 : undefined,
    name: one.name,
    format: signed,
    value: (row) => chrfOf(one, row) - chrfOf(scored[0], row),
  }));
  return [...columns, ...differences];
}

const COLUMNS = () => [
  { key: 'number', title: '#', value: (row) => row },
  { key: 'source', title: 'Sentence', value: (row) => data.sentences.source[row] },
  { key: 'length', title: 'Length', value: (row) => data.sentences.length[row] },
  ...chrfColumns(),
];

function chosenRows() {
  const { sentences, report } = data;
  const names = shownNames();
  const bucket = list.bucket === '' ? null : report.sets[chosen.set].buckets[Number(list.bucket)];
  const wanted = list.text.trim().toLowerCase();
  const texts = [sentences.source, sentences.reference, ...sentences.hypotheses];
  const rows = places.map((place, row) => row).filter((row) => {
    const length = sentences.length[row];
    if (!names.includes(places[row].set)) return false;
    if (bucket && (length < bucket.lower || (bucket.upper !== null && length >= bucket.upper))) return false;
    if (list.differing && sentences.hypotheses.every((of) => of[row] === sentences.hypotheses[0][row])) return false;
    return !wanted || texts.some((of) => of[row].toLowerCase().includes(wanted));
  });
  const { value } = COLUMNS().find((column) => column.key === list.sort);
  const sign = list.descending ? -1 : 1;
  const compare = list.sort === 'source' ? new Intl.Collator().compare : (a, b) => a - b;
  return rows.toSorted((a, b) => sign * compare(value(a), value(b)) || a - b);
}

function sortBy(key) {
  list.descending = list.sort === key && !list.descending;
  list.sort = key;
  list.shown = PAGE;
  renderRows();
}

function mapButton(row, run) {
  const name = data.runs[run].name;
  const label = `Attention map of sentence ${places[row].number}, ${name}`;
  return el('button', { type: 'button', class: 'map-button', 'aria-label': label, title: label, onclick: () => openMap(row, run) },
    svg('svg', { width: 14, height: 14, 'aria-hidden': 'true' },
      [[0, 0, 1], [5, 0, 0.3], [0, 5, 0.3], [5, 5, 1], [10, 5, 0.3], [5, 10, 0.3], [10, 10, 1]].map(([x, y, opacity]) =>
        svg('rect', { x, y, width: 4, height: 4, opacity }))),
    'map');
}

const isReadable = (run) => data.sentences.maps[run].some(Boolean);

function sentenceRow(row) {
  const one = sentenceAt(row);
  const cells = chrfColumns().map(({ title, style, format, value }) =>
    el('td', { class: 'number', role: 'cell', 'data-label': title }, style === undefined ? '' : swatch(style), format(value(row))));
  const open = (event) => {
    if (event.target.closest('button') || String(window.getSelection())) return;
    const run = data.runs.findIndex((of, i) => data.sentences.maps[i][row]);
    if (run >= 0) openMap(row, run);
  };
  return el('tr', { role: 'row', 'data-row': row, onclick: open },
    el('td', { class: 'number', role: 'cell' }, String(one.number),
      data.sentences.sets.length > 1 ? el('span', { class: 'quiet set', title: one.set }, one.set) : ''),
    el('td', { role: 'cell', class: 'sentence' },
      sentenceTexts(row, (run) => [isMean() ? el('span', { class: 'quiet number' }, `chrF ${fixed(one.chrf[run])} `) : '',
        isReadable(run) ? mapButton(row, run) : ''])),
    el('td', { class: 'number', role: 'cell', 'data-label': 'length' }, String(one.length)),
    cells);
}

function sortHeader({ key, title, style, name }) {
  const direction = list.descending ? ['descending', '▼'] : ['ascending', '▲'];
  const [state, arrow] = list.sort === key ? direction : ['none', ''];
  return el('th',
    { scope: 'col', role: 'columnheader', 'aria-sort': state, 'data-key': key, class: key === 'source' ? '' : 'number' },
    el('button', { type: 'button', onclick: () => sortBy(key) }, title,
      style === undefined ? '' : [' ', el('span', { class: 'hidden' }, name), swatch(style)],
      el('span', { class: 'arrow', 'aria-hidden': 'true' }, arrow)));
}

function clearFilters() {
  element('filters').reset();
  filterBy({ text: '', bucket: '', differing: false });
  element('filter-text').focus();
}

const emptyRow = () =>
  el('tr', { class: 'empty', role: 'row' }, el('td', { role: 'cell', colspan: COLUMNS().length }, 'No sentence matches these filters. ',
    el('button', { type: 'button', id: 'clear-filters', onclick: clearFilters }, 'Clear the filters')));

function renderRows() {
  list.rows = chosenRows();
  const focused = document.activeElement?.closest('th[data-key]');
  refill(element('sentence-head'), COLUMNS().map(sortHeader));
  refill(element('sentence-rows'), list.rows.length ? list.rows.slice(0, list.shown).map(sentenceRow) : emptyRow());
  element('sentence-count').textContent = `${integer(list.rows.length)} of ${integer(places.length)} sentences`;
  element('sentence-more').hidden = list.rows.length <= list.shown;
  if (focused) document.querySelector(`th[data-key="${focused.dataset.key}"] button`).focus();
}

function showMore() {
  const from = list.shown;
  list.shown += PAGE * 4;
  element('sentence-rows').append(...list.rows.slice(from, list.shown).map(sentenceRow));
  element('sentence-more').hidden = list.rows.length <= list.shown;
  const next = element('sentence-rows').children[from];
  next.tabIndex = -1;
  next.focus({ preventScroll: true });
}

function filterBy(change) {
  Object.assign(list, change, { shown: PAGE });
  renderRows();
}

function renderBuckets() {
  const { buckets, num_pairs: total } = shownSet();
  const options = buckets.map((bucket, i) => [i, `${bucket.label} ${data.unit}: ${integer(bucket.num_pairs)} of ${integer(total)} sentences`]);
  list.bucket = '';
  refill(element('filter-bucket'), optionsOf([['', 'any length'], ...options], ''));
}

function sentenceContent() {
  const input = el('input', { id: 'filter-text', type: 'search', autocomplete: 'off', spellcheck: 'false', placeholder: 'words in any text',
    oninput: (event) => filterBy({ text: event.target.value }) });
  const without = data.runs.filter((_, run) => !isReadable(run));
  return [
    el('form', { class: 'filters', id: 'filters', role: 'search', onsubmit: (event) => event.preventDefault() },
      control(el('label', { for: 'filter-text' }, 'Contains'), input),
      choice('filter-bucket', 'Length', [], (event) => filterBy({ bucket: event.target.value })),
      data.runs.length > 1 ? checkbox('filter-differing', 'only where runs differ', (differing) => filterBy({ differing })) : '',
      el('p', { id: 'sentence-count', class: 'quiet', role: 'status' })),
    without.map((run) => note('No attention maps of ', words(run.name), `: ${run.no_map}.`)),
    floorNote(),
    marksLegend(),
    el('table', { class: 'sentences', role: 'table' },
      el('caption', { class: 'hidden' }, 'Sentences: buttons in the header sort'),
      el('thead', { role: 'rowgroup' }, el('tr', { id: 'sentence-head', role: 'row' })),
      el('tbody', { id: 'sentence-rows', role: 'rowgroup' })),
    el('button', { type: 'button', id: 'sentence-more', onclick: showMore }, 'Show more sentences'),
  ];
}
