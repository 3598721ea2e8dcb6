const data = JSON.parse(element('data').textContent);

function renderSet() {
  renderScores();
  renderLength();
  renderAttention();
  renderBuckets();
  renderRows();
  renderVectors();
}

function setChoice() {
  if (data.report.sets.length < 2) return '';
  const { stitch } = data.report.sets[0];
  chosen.set = data.report.sets.reduce((last, set, i) => (set.stitch === stitch ? i : last), 0); // the pooled one
  const options = data.report.sets.map((set, i) =>
    el('option', { value: String(i), selected: i === chosen.set }, `${set.name} (${integer(set.num_pairs)})`));
  const change = (event) => {
    chosen.set = Number(event.target.value);
    renderSet();
  };
  return el('p', { class: 'control' }, el('label', { for: 'set' }, 'Test set'), el('select', { id: 'set', onchange: change }, options));
}

function evaluationPage() {
  const { environment } = data.report;
  const when = environment.written_at ? `${environment.written_at.slice(0, 10)}, ` : '';
  const commit = environment.git ? `, commit ${environment.git.commit.slice(0, 12)}${environment.git.is_dirty ? ' with changes' : ''}` : '';
  element('top').append(
    el('h1', {}, 'Evaluation'),
    el('p', { class: 'quiet' }, `${when}seq2seq-attn ${environment.seq2seq_attn}${commit}`),
  );
  placeSentences();
  const configurations = configurationContent();
  const sections = [
    ['scores', 'Scores', el('div', { id: 'scores-content' })],
    ['length', 'By length', el('div', { id: 'length-content' })],
    ['attention', 'Attention', isJudged() && el('div', { id: 'attention-content' })],
    ['sentences', 'Sentences', sentenceContent()],
    ['vectors', 'Sentence vectors', vectorContent()],
    ['configurations', 'Configurations', configurations],
    ['method', 'How it was measured', signatureContent()],
    ['environment', 'Runs and environment', [runsTable(), environmentTable()]],
  ].filter(([, , content]) => content);
  element('nav').append(
    el('ul', {}, sections.map(([id, title]) => el('li', {}, el('a', { href: `#${id}` }, title)))),
    setChoice(),
  );
  element('main').append(...sections.map(([id, title, content]) => section(id, title, content)));
  makeDialog();
  renderSet();
}

const LINES = 20;

function mapsPage() {
  element('top').append(el('h1', {}, words(data.title)), el('p', { class: 'quiet' }, words(data.note)));
  element('nav').remove();
  const views = [];
  const room = () => Math.min(window.innerWidth - 32, 1100) - (window.innerWidth < 640 ? 110 : 170);
  const article = ({ number, hypothesis, map }) => {
    const attention = map && attentionOf(map);
    const view = map ? mapView(attention, room()) : el('p', { class: 'note' }, 'No map: the file would grow too large.');
    if (map) views.push(view);
    return el('article', { 'aria-label': `Line ${number}` }, el('h2', {}, `Line ${integer(number)}`),
      el('dl', { class: 'texts' }, map ? textLine('source tokens', attention.source.join(' ')) : '', textLine('translation', hypothesis)),
      view);
  };
  let shown = 0;
  const more = el('button', { type: 'button', id: 'more' }, 'Show more lines');
  const show = () => {
    const next = data.lines.slice(shown, shown + LINES).map(article);
    more.before(...next);
    shown += next.length;
    more.hidden = shown >= data.lines.length;
  };
  more.addEventListener('click', show);
  element('main').append(floorNote() ? el('p', { class: 'note' }, floorNote()) : '', more);
  show();
  onColorChange(() => views.forEach((view) => view.redraw()));
}

if (data.kind === 'maps') mapsPage();
else evaluationPage();
