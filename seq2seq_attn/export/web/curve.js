// The accuracy of each model on test sentences by length: the share of translations that equal the reference, or chrF. A
// line marks the length of the sentence that is shown.
const shown = (share) => (data.measure === 'chrF' ? `chrF ${Math.round(100 * share)}` : percent(share));

function drawCurve(length) {
  const points = data.accuracy;
  const longest = points.at(-1).longest;
  const x = (count) => 56 + (280 * Math.min(count, longest)) / longest;
  const y = (share) => 125 - 110 * share;
  const label = (left, top, text, anchor = 'middle') => svg('text', { x: left, y: top, 'text-anchor': anchor }, text);
  const lines = translators.map((one, number) => {
    const drawn = points.map((point) => `${x(point.length)},${y(point.shares[number])}`).join(' ');
    return svg('polyline', { class: lineOf(number), points: drawn });
  });
  const summary = translators.map((one, number) => {
    const [first, last] = [points[0], points.at(-1)].map(({ shares }) => shown(shares[number]));
    return `${nameOf(number)}: ${first} for the shortest, ${last} for the longest`;
  });
  const mark = svg('line', { class: 'here', x1: x(length), x2: x(length), y1: y(1), y2: y(0) });
  return svg('svg', { class: 'curve', viewBox: '0 0 345 165', role: 'img', 'aria-label': `${summary.join('. ')}.` },
    label(50, y(1) + 5, data.measure === 'chrF' ? '100' : '100 %', 'end'), label(50, y(0) + 5, data.measure === 'chrF' ? '0' : '0 %', 'end'),
    label(196, 160, `${data.unit} in the sentence`), label(x(0), 144, '0'), label(x(longest), 144, String(longest)),
    svg('path', { class: 'axis', d: `M${x(0)},${y(1)} V${y(0)} H${x(longest)}` }),
    lines, length && length <= longest ? mark : null);
}

// Describe the accuracy on test sentences of a similar length, or say that there are no such test sentences.
function readCurve(length, hasUnknown) {
  const points = data.accuracy;
  const [shortest, longest] = [points[0].shortest, points.at(-1).longest];
  const point = points.find((one) => one.shortest <= length && length <= one.longest);
  const counted = `Your sentence has ${length} ${data.unit}`;
  if (!length) return '';
  if (length < shortest || length > longest) {
    return `${counted}, the test sentences ${shortest} to ${longest}: the curve says nothing about it.`;
  }
  if (hasUnknown) return `${counted}, some of which training has not shown: the curve says nothing about it.`;
  if (!point) return `${counted}: no test sentence is as long.`;
  const range = point.shortest === point.longest ? point.longest : `${point.shortest} to ${point.longest}`;
  const shares = translators.map((_, number) => `${nameOf(number)} ${shown(point.shares[number])}`).join(', ');
  const what = data.measure === 'chrF' ? 'Of' : 'Equal to the reference, of';
  return `${what} the ${point.count} test sentences with ${range} ${data.unit}: ${shares}.`;
}
