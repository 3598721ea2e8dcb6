// How scores were measured: configurations side by side, signatures, environments.
function flatten(value, path = '', found = new Map()) {
  const isTree = value !== null && typeof value === 'object' && !Array.isArray(value) && Object.keys(value).length;
  if (!isTree) found.set(path, typeof value === 'string' ? value : JSON.stringify(value));
  else for (const [key, child] of Object.entries(value)) flatten(child, path ? `${path}.${key}` : key, found);
  return found;
}

// A row for each key, a column for each configuration. Keys whose values differ have a sign, not only a color.
function sideBySide(id, label, header, trees) {
  const columns = trees.map((tree) => flatten(tree));
  const keys = [...new Set(columns.flatMap((column) => [...column.keys()]))].filter(Boolean);
  const rows = keys.map((key) => {
    const values = columns.map((column) => column.get(key));
    const differs = values.some((value) => value !== values[0]);
    return el('tr', { class: differs ? 'differs' : 'same', 'data-key': key },
      el('th', { scope: 'row' }, key, differs ? el('span', { class: 'mark', title: 'differs' }, ' ≠') : ''),
      values.map((value) => el('td', {}, value === undefined ? el('span', { class: 'quiet' }, '–') : words(value))));
  });
  return tableOf(label, ['Setting', ...header], rows, { id, class: 'settings' });
}

function configurationContent() {
  const runs = [...data.runs.keys()].filter((run) => hasConfig(data.runs[run]));
  if (!runs.length) return null;
  const table = sideBySide('config-table', 'Configurations', runs.map(runLabel), runs.map((run) => data.runs[run].config));
  if (runs.length < 2) return table;
  const count = table.querySelectorAll('tr.differs').length;
  const fold = (isFolded) => table.querySelector('table').classList.toggle('only-differences', isFolded);
  fold(count > 0);
  return [
    checkbox('only-differences', `only the ${count} settings that differ`, fold, count > 0),
    table,
  ];
}

function runsTable() {
  const facts = data.report.runs.map(({ name, training_environment: environment, ...rest }) => rest);
  return sideBySide('run-table', 'Runs', [...data.runs.keys()].map(runLabel), facts);
}

function signatureContent() {
  const rows = data.report.sets[0].measures.map((measure) =>
    el('tr', {}, el('th', { scope: 'row' }, data.titles[measure.name]), el('td', {}, el('code', {}, measure.signature))));
  return [
    tableOf('Signatures', ['Measure', 'sacreBLEU signature'], rows, { id: 'signature-table' }),
    el('ul', { class: 'legend' }, data.legend.map((line) => el('li', {}, words(line)))),
  ];
}

function environmentTable() {
  const { runs, environment } = data.report;
  const trained = [...runs.keys()].filter((run) => runs[run].training_environment);
  const header = ['This evaluation', ...trained.map((run) => [runLabel(run), ' training'])];
  const trees = [environment, ...trained.map((run) => runs[run].training_environment)];
  return sideBySide('environment-table', 'Environment', header, trees);
}
