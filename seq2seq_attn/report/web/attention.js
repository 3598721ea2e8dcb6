// The statistics of attention: entropy, dropped and repeated words, and agreement with gold links.
const ATTENTION_COLUMNS = [['entropy', 'Entropy, nats'], ['dropped', 'Dropped'], ['repeated', 'Repeated'], ['missing', 'Missing'], ['excess', 'Excess']];
const GOLD_COLUMNS = [['error_rate', 'Error rate (AER)'], ['precision', 'Precision'], ['recall', 'Recall'], ['mass', 'Mass on links']];
const percent = (value) => (value === null || value === undefined ? '–' : `${(100 * value).toFixed(1)} %`);

function meanOf(values) {
  if (!values.length || values.some((value) => value === null || value === undefined)) return null;
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

// The runs of each arm. A run that differs from all others in more than its seed is an arm by itself.
const attentionRows = (runs) => arms().map(({ name, runs: members }, arm) => ({
  label: styleLabel(arm, name),
  members: runs.filter((one) => members.includes(one.run)),
}));

function attentionByLength() {
  const { buckets, num_pairs, attention } = shownSet();
  const rows = [...buckets, { label: 'all', num_pairs }].map((bucket, index) => {
    const analyzed = attentionRows((attention.buckets[index] ?? attention).runs);
    return analyzed.map(({ label, members }, i) =>
      el('tr', { class: bucket.is_thin ? 'thin' : '' },
        i ? '' : [groupCell('th', analyzed.length, starred(bucket)), groupCell('td', analyzed.length, integer(bucket.num_pairs))],
        whoCell(label),
        ATTENTION_COLUMNS.map(([key]) => {
          const value = meanOf(members.map((one) => one[key]));
          return numberCell(key === 'entropy' ? fixed(value, 2) : percent(value));
        })));
  });
  const header = [`Length in ${data.unit}`, 'n', byArm().kind, ...ATTENTION_COLUMNS.map(([, title]) => title)];
  return tableOf('Attention by length', header, rows, { id: 'attention-table' });
}

function attentionOnGold() {
  const analyzed = attentionRows(shownSet().attention.runs).filter(({ members }) => members.every((one) => one.gold));
  if (!analyzed.length) return null;
  const rows = analyzed.map(({ label, members }) => {
    const best = Math.min(...members[0].gold.map((_, i) => meanOf(members.map((one) => one.gold[i].error_rate))));
    return members[0].gold.map(({ shift }, i) =>
      el('tr', {},
        i ? '' : groupCell('th', members[0].gold.length, label),
        numberCell(shift ? signed(shift, 0) : 'none'),
        GOLD_COLUMNS.map(([key]) => {
          const value = meanOf(members.map((one) => one.gold[i][key]));
          return numberCell(key === 'error_rate' && value === best ? el('strong', {}, percent(value)) : percent(value));
        })));
  });
  const header = [byArm().kind, 'Shift', ...GOLD_COLUMNS.map(([, title]) => title)];
  return tableOf('Attention against gold links', header, rows, { id: 'gold-table' });
}

function attentionContent() {
  if (!shownSet().attention) return [note('The attention on this test set was not analyzed.')];
  const gold = attentionOnGold();
  return [
    el('h3', {}, 'By length'), attentionByLength(), note(sentenceCase(data.attention_notes[0])),
    gold ? [el('h3', {}, 'Against gold links'), gold, note(sentenceCase(data.attention_notes[1]))] : '',
  ];
}

const sentenceCase = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;
const isAnalyzed = () => data.report.sets.some((set) => set.attention);
const renderAttention = () => isAnalyzed() && refill(element('attention-content'), attentionContent());
