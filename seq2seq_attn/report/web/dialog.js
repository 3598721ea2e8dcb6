// A dialog for all maps. The browser closes it on Esc, keeps the focus inside, and returns the focus to the button.
const viewer = { dialog: null, row: 0, run: 0 };

function makeDialog() {
  const closeBeside = (event) => event.target === viewer.dialog && viewer.dialog.close(); // a click outside the dialog
  viewer.dialog = el('dialog', { id: 'viewer', 'aria-labelledby': 'viewer-title', onclick: closeBeside });
  document.body.append(viewer.dialog);
  let width = window.innerWidth;
  window.addEventListener('resize', () => {
    if (viewer.dialog.open && window.innerWidth !== width) showMap();
    width = window.innerWidth;
  });
}

function openMap(row, run) {
  Object.assign(viewer, { row, run });
  showMap('close');
  viewer.dialog.showModal();
  element('viewer-close').focus();
}

function step(by) {
  viewer.row = list.rows[list.rows.indexOf(viewer.row) + by];
  showMap(by < 0 ? 'previous' : 'next');
}

const SIDE_BY_SIDE = 1000; // pixels that two maps need

// The run whose map is shown beside the map of the chosen run if there is room: the first other run that has a map.
function companion(row, run) {
  if (!data.sentences.maps[run][row] || window.innerWidth < SIDE_BY_SIDE) return null;
  const other = data.runs.findIndex((of, i) => i !== run && data.sentences.maps[i][row]);
  return other < 0 ? null : other;
}

function pictureOf(row, run, count, texts) {
  const stored = data.sentences.maps[run][row];
  if (!stored) return note(words(data.runs[run].name), `: ${data.runs[run].no_map}.`);
  const room = Math.min(window.innerWidth * 0.96, 1180) / count - (window.innerWidth < 640 ? 130 : 190);
  return mapView(attentionOf(stored), room, pointAtWords(texts, run));
}

function showMap(focus) {
  const { row, run } = viewer;
  const one = sentenceAt(row);
  const place = list.rows.indexOf(row);
  const kept = viewer.dialog.contains(document.activeElement) ? document.activeElement.id : '';
  const choose = (other) => {
    viewer.run = other;
    showMap(`run-${other}`);
  };
  const runs = data.runs.map((_, i) =>
    el('button', { type: 'button', id: `viewer-run-${i}`, 'aria-pressed': String(i === run), onclick: () => choose(i) }, runLabel(i)));
  const button = (id, label, text, onclick, disabled) =>
    el('button', { type: 'button', id: `viewer-${id}`, 'aria-label': label, title: label, disabled, onclick }, text);
  const shown = [run, companion(row, run)].filter((of) => of !== null);
  const texts = sentenceTexts(row, (of) => el('span', { class: 'quiet' }, `chrF ${fixed(one.chrf[of])}`), shown);
  const pictures = shown.map((of) => el('figure', {},
    shown.length > 1 ? el('figcaption', {}, runLabel(of)) : '', pictureOf(row, of, shown.length, texts)));
  refill(viewer.dialog,
    el('div', { class: 'viewer-head' },
      el('h2', { id: 'viewer-title' }, 'Sentence ', String(one.number), el('small', {}, ` ${one.set}`)),
      button('previous', 'Previous sentence', '←', () => step(-1), place <= 0),
      button('next', 'Next sentence', '→', () => step(1), place < 0 || place >= list.rows.length - 1),
      button('close', 'Close (Esc)', '✕', () => viewer.dialog.close()),
    ),
    data.runs.length > 1 ? el('div', { class: 'choice', role: 'group', 'aria-label': 'Run' }, runs) : '',
    texts,
    el('div', { class: 'pictures' }, pictures),
    note(data.map_note),
    floorNote(),
  );
  const target = focus ? element(`viewer-${focus}`) : element(kept);
  if (target) (target.disabled ? element('viewer-close') : target).focus();
}
