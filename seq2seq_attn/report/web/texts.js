// The texts of a sentence, in which unknown source words and words that differ between reference and hypotheses are
// marked.
function nameList(runs) {
  if (runs.length < data.runs.length) return runs.map((run) => data.runs[run].name).join(', ');
  return runs.length > 1 ? 'every run' : 'this run';
}

const textLine = (kind, text) => el('div', {}, el('dt', {}, kind), el('dd', {}, words(text)));

// The ranges of several runs as a list without repetitions. Each range names all runs that have the range.
function byRange(ofRuns, make) {
  const all = ofRuns.flatMap((ranges, run) => ranges.map(({ start, end }) => ({ range: { start, end }, run })));
  const equal = Map.groupBy(all, ({ range }) => `${range.start} ${range.end}`);
  return [...equal.values()].map((group) => ({ ...group[0].range, ...make(group.map(({ run }) => run)) }));
}

function unknownRanges(row) {
  const ranges = data.sentences.unknown.map((of) => {
    const [tokens, positions] = of[row] ?? [null, []];
    const all = positions.length ? tokenRanges(data.sentences.source[row], data.tokens[tokens]) : [];
    return positions.map((position) => all[position]).filter(Boolean);
  });
  return byRange(ranges, (runs) => ({ tag: 'span', attributes: { class: 'unknown', title: `unknown to ${nameList(runs)}` } }));
}

function missingRanges({ reference, hypotheses }) {
  const ranges = hypotheses.map((text) => unsharedWords(text, reference).missing);
  const kind = (runs) => (runs.length < hypotheses.length ? 'missing some' : 'missing');
  return byRange(ranges, (runs) => ({ tag: 'del', attributes: { class: kind(runs), title: `missing from the translation of ${nameList(runs)}` } }));
}

const excessRanges = ({ reference, hypotheses }, run) =>
  unsharedWords(hypotheses[run], reference).excess.map((range) =>
    ({ ...range, tag: 'ins', attributes: { class: 'excess', title: 'not in the reference, or not at this place' } }));

// The places of the tokens of a run's map in the texts, which are marked while the reader points at the map.
const tokenMarks = (text, tokens, side, run) =>
  tokenRanges(text, tokens).flatMap((range, i) => (range ? [{ ...range, tag: 'span', attributes: { 'data-token': `${side}${run}-${i}` } }] : []));

// The lines of a sentence. `extra` returns elements to show after a run's hypothesis. `mapped` has the runs whose maps are shown.
function sentenceTexts(row, extra, mapped = []) {
  const one = sentenceAt(row);
  const maps = mapped.map((run) => [run, data.sentences.maps[run][row]]).filter(([, stored]) => stored);
  const ofSource = maps.flatMap(([run, [tokens]]) => tokenMarks(one.source, data.tokens[tokens], 'source', run));
  const ofTarget = (run) => maps.filter(([of]) => of === run).flatMap(([, stored]) => tokenMarks(one.hypotheses[run], data.tokens[stored[1]], 'target', run));
  return el('dl', { class: 'texts' },
    textLine('source', marked(one.source, [...ofSource, ...unknownRanges(row)])),
    textLine('reference', marked(one.reference, missingRanges(one))),
    one.hypotheses.map((text, run) =>
      el('div', { class: 'hypothesis' }, el('dt', {}, runLabel(run)),
        el('dd', {}, words(marked(text, [...ofTarget(run), ...excessRanges(one, run)])), ' ', extra(run)))));
}

// Mark the words in the texts of a box that belong to the cell of a map at which the reader points.
const pointAtWords = (box, run) => (cell) => {
  box.querySelectorAll('[data-token].pointed').forEach((node) => node.classList.remove('pointed'));
  if (!cell) return;
  box.querySelectorAll(`[data-token="target${run}-${cell[0]}"], [data-token="source${run}-${cell[1]}"]`)
    .forEach((node) => node.classList.add('pointed'));
};

const marksLegend = () =>
  note(
    el('ins', { class: 'excess' }, 'Underlined'), ' in a translation: words that the reference lacks, or has in another order. ',
    el('del', { class: 'missing' }, 'Struck out'), ` in the reference: words that ${data.runs.length > 1 ? 'every' : 'the'} translation lacks or has in another order`,
    data.runs.length > 1 ? ['; ', el('del', { class: 'missing some' }, 'dotted'), ': words that some translations lack or have in another order. '] : '. ',
    data.sentences.unknown.some((of) => Object.keys(of).length)
      ? [el('span', { class: 'unknown' }, 'Italic'), ' in the source: words that a run does not know.'] : '');
