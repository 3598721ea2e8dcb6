// Find words in texts: words that differ between two texts, and the places of a model's tokens.
const segmenter = new Intl.Segmenter('en', { granularity: 'word' });
const wordsIn = (text) =>
  [...segmenter.segment(text)].filter((one) => one.isWordLike).map(({ segment, index }) =>
    ({ key: segment.toLowerCase(), start: index, end: index + segment.length }));

// The words that differ between two texts, compared in order: `excess` in the hypothesis, `missing` in the reference. A word
// that has moved is in both. The tables count spaCy's tokens in any order instead.
function unsharedWords(hypothesis, reference) {
  const [left, right] = [wordsIn(hypothesis), wordsIn(reference)];
  const { excess, missing } = compareInOrder(left.map(({ key }) => key), right.map(({ key }) => key));
  return { excess: excess.map((place) => left[place]), missing: missing.map(({ position }) => right[position]) };
}

const SLACK = 3; // characters between two tokens, such as spaces
const isSpecial = (token) => /^<\w+>$/.test(token);

// The range of characters of each token in the text; null for a token that the text does not have.
function tokenRanges(text, tokens) {
  const lower = text.toLowerCase().length === text.length ? text.toLowerCase() : text;
  let [from, slack] = [0, SLACK];
  return tokens.map((token) => {
    const wanted = (lower === text ? token : token.toLowerCase()).replaceAll('▁', ' ').trim();
    if (!wanted) return null;
    const start = lower.indexOf(wanted, from);
    if (start < 0 || start > from + slack) {
      slack += isSpecial(token) ? 4 * SLACK : wanted.length + SLACK;
      return null;
    }
    [from, slack] = [start + wanted.length, SLACK];
    return { start, end: from };
  });
}

// A text in which ranges of characters, which may overlap, are elements: [{start, end, tag, attributes}].
function marked(text, ranges) {
  const edges = [...new Set([0, text.length, ...ranges.flatMap(({ start, end }) => [start, end])])].toSorted((a, b) => a - b);
  return edges.slice(1).map((end, i) => {
    const inside = ranges.filter((range) => range.start <= edges[i] && range.end >= end);
    return inside.reduce((child, { tag, attributes }) => el(tag, attributes, child), text.slice(edges[i], end));
  });
}
