// The sentence that the page shows first, with an explanation of its map.
function exampleContent() {
  if (!data.example) return null;
  const { run, row } = data.example;
  const { number, set, reference, hypotheses, chrf } = sentenceAt(row);
  const content = el('div', { class: 'beside' });
  const room = Math.min(window.innerWidth - 32, 640) - (window.innerWidth < 640 ? 90 : 130);
  const view = mapView(attentionOf(data.sentences.maps[run][row]), room, pointAtWords(content, run));
  content.append(
    el('div', { class: 'beside-text' },
      el('p', { class: 'quiet' }, `Sentence ${integer(number)} of ${set}, translated `,
        hypotheses[run] === reference ? 'exactly as the reference' : `with chrF ${fixed(chrf[run])}`, ' by ', words(data.runs[run].name), '.'),
      sentenceTexts(row, (of) => (of === run ? '' : el('span', { class: 'quiet' }, `chrF ${fixed(chrf[of])}`)), [run]),
      marksLegend(),
      el('p', { class: 'note', id: 'map-note' }, data.map_note)),
    view,
  );
  return [content];
}
