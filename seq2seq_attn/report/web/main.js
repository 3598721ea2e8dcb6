const data = JSON.parse(element('data').textContent);

function renderSet() {
  renderScores();
  renderLength();
  renderAttention();
  renderBuckets();
  renderRows();
}

function setChoice() {
  if (data.report.sets.length < 2) return '';
  const { num_concatenated } = data.report.sets[0];
  chosen.set = data.report.sets.reduce((last, set, i) => (set.num_concatenated === num_concatenated ? i : last), 0); // pooled sets come last
  const options = data.report.sets.map(({ name, num_pairs: count }, i) => [i, `${name} (${integer(count)})`]);
  const change = (event) => {
    chosen.set = Number(event.target.value);
    renderSet();
  };
  return choice('set', 'Test set', optionsOf(options, chosen.set), change);
}

function languageName(code) {
  try {
    return new Intl.DisplayNames(['en'], { type: 'language' }).of(code.replace('_', '-')); // eng_Latn
  } catch {
    return code; // not a language code, for example the suffix of a file
  }
}

const enumeration = (items) => items.flatMap((item, i) => [i === 0 ? '' : i === items.length - 1 ? ' and ' : ', ', item]);

// The subject of the evaluation: languages, corpus, runs or arms.
const CORPORA = { multi30k: 'Multi30k', captions: 'embedded captions' };
function subject() {
  const { source, target, corpus } = data.report.languages;
  const names = arms().map(({ name }) => words(name));
  return [`${languageName(source)} to ${languageName(target)}${CORPORA[corpus] ? `, ${CORPORA[corpus]}` : ''}: `,
    names.length > 4 ? `${names.length} ${isGrouped() ? 'arms' : 'runs'}` : enumeration(names)];
}

const skipLink = () => el('a', { class: 'skip', href: '#main' }, 'Skip to the content');

function evaluationPage() {
  const { environment } = data.report;
  const when = environment.written_at ? `${environment.written_at.slice(0, 10)}, ` : '';
  const commit = environment.git ? `, commit ${environment.git.commit.slice(0, 12)}${environment.git.is_dirty ? ' with changes' : ''}` : '';
  placeSentences();
  const version = `seq2seq-attn ${environment.seq2seq_attn}`;
  const header = el('header', { id: 'top' },
    el('h1', {}, subject()),
    el('p', { class: 'quiet' }, `${integer(places.length)} sentence pairs of `, enumeration(data.sentences.sets.map(({ name }) => words(name))),
      `; ${when}${version}${commit}`),
    el('p', { id: 'conclusion' }, words(data.report.conclusion)));
  const sections = [
    ['example', 'A translation and its attention', exampleContent(), 'Example'],
    ['scores', 'Scores', el('div', { id: 'scores-content' })],
    ['length', 'By length', el('div', { id: 'length-content' })],
    ['curves', 'Learning curves', curveContent()],
    ['attention', 'Attention', isAnalyzed() && el('div', { id: 'attention-content' })],
    ['sentences', 'Sentences', sentenceContent()],
    ['configurations', 'Configurations', configurationContent()],
    ['method', 'How it was measured', signatureContent(), 'Method'],
    ['environment', 'Runs and environment', [runsTable(), environmentTable()], 'Environment'],
  ].filter(([, , content]) => content);
  const nav = el('nav', { id: 'nav', 'aria-label': 'Sections' },
    el('ul', {}, sections.map(([id, title, , short]) => el('li', {}, el('a', { href: `#${id}` }, short || title)))),
    setChoice());
  document.body.prepend(skipLink(), header, nav);
  refill(element('main'), sections.map(([id, title, content]) => section(id, title, content)));
  makeDialog();
  renderSet();
}

const LINES = 20;
const sourceTokens = ({ source, unknown }) => source.flatMap((token, i) => [i ? ' ' : '',
  el('span', { 'data-token': `source0-${i}`, ...(unknown.includes(i) ? UNKNOWN : {}) }, token)]);

function mapsPage() {
  document.body.prepend(skipLink(), el('header', { id: 'top' }, el('h1', {}, words(data.title))));
  const room = () => Math.min(window.innerWidth - 32, 1100) - (window.innerWidth < 640 ? 110 : 170);
  const article = ({ number, hypothesis, map }) => {
    const attention = map && attentionOf(map);
    const box = el('article', { class: 'beside', 'aria-label': `Line ${number}` });
    const view = map ? mapView(attention, room(), pointAtWords(box, 0)) : note('No map: the file would grow too large.');
    const marks = map ? tokenMarks(hypothesis, attention.target, 'target', 0) : [];
    box.append(el('div', { class: 'beside-text' }, el('h2', {}, `Line ${integer(number)}`),
      el('dl', { class: 'texts' }, map ? textLine('source tokens', sourceTokens(attention)) : '', textLine('translation', marked(hypothesis, marks)))), view);
    return box;
  };
  let shown = 0;
  const show = () => {
    const next = data.lines.slice(shown, shown + LINES).map(article);
    more.before(...next);
    shown += next.length;
    more.hidden = shown >= data.lines.length;
  };
  const more = el('button', { type: 'button', id: 'more', onclick: show }, 'Show more lines');
  refill(element('main'), el('p', { class: 'note', id: 'map-note' }, data.map_note), floorNote(), more);
  show();
}

if (data.kind === 'maps') mapsPage();
else evaluationPage();
