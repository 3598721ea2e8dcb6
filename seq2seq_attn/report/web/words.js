// Words in texts: those that two texts do not share in the same order, and where the tokens of a model lie.
const segmenter = new Intl.Segmenter('en', { granularity: 'word' });
const wordsIn = (text) =>
  [...segmenter.segment(text)].filter((one) => one.isWordLike).map(({ segment, index }) =>
    ({ key: segment.toLowerCase(), start: index, end: index + segment.length }));

// The words that two texts do not share in the same order: `excess` in the hypothesis, `missing` in the reference. A word at
// another place is both. The tables count tokens of spaCy in any order instead.
function unsharedWords(hypothesis, reference) {
  const [left, right] = [wordsIn(hypothesis), wordsIn(reference)];
  const { excess, missing } = compareInOrder(left.map(({ key }) => key), right.map(({ key }) => key));
  return { excess: excess.map((place) => left[place]), missing: missing.map(({ position }) => right[position]) };
}

const SLACK = 3; // characters between two tokens, such as spaces
const isSpecial = (token) => /^<\w+>$/.test(token);

// The characters of each token in the text that the tokens were made of, or make; null where it is not found.
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
