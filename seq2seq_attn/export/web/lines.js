// Translate lines that have several sentences, or words that a model does not know, by a translator of single sentences.
function lineTranslator({ translateSentence, ...one }) {
  const { run, tokenizeSource: tokenize } = one;
  const hasUnknownToken = (word) => !one.isKnown(word) && !tokenize(word).every(one.isKnown);
  const passer = run.words && run.search.unk === 'pass' ? passing(run, hasUnknownToken) : null;
  const putBack = (standIns, result) => (standIns.size ? passer.putBack(standIns, result, one.detokenize) : result);
  // The sentences of a text, or the whole text for a model that was trained on lines with several sentences.
  const splitLine = (line) => (run.lines.one_sentence ? splitSentences(line) : [line]);
  const sentencesOf = (text) => text.split('\n').flatMap(splitLine).filter((sentence) => tokenize(sentence).length);

  // The forms in which the model reads a line: `sentences` with `standIns` for unknown words; `isKept` if the line stays as `text`.
  const plans = new Map();
  function plan(line, beamSize = run.search.beam_size) {
    const key = JSON.stringify([line, beamSize]);
    if (!plans.has(key)) plans.set(key, makePlan(line, beamSize));
    return plans.get(key);
  }
  function makePlan(line, beamSize) {
    const plain = { sentences: sentencesOf(line), standIns: new Map() };
    if (!passer || !line.trim()) return plain;
    const text = normalized(line, false);
    const sentences = sentencesOf(line).map((sentence) => `${normalized(sentence, false)} `);
    const versions = passer.versionsOf(sentences);
    if (versions.length < 2) return versions[0] ?? { ...plain, text, isKept: true };
    const rate = ({ standIns, ...version }) => {
      const result = putBack(standIns, translateWhole(version.sentences, { beamSize }));
      const changed = [...standIns.keys()].filter((word) => passer.count(result.text, word) !== passer.count(text, word));
      return { ...result, ...version, standIns, numLost: result.numLost + changed.length };
    };
    const ranked = versions.slice(0, 4).map(rate);
    if (ranked.every(({ numLost }) => numLost)) ranked.push(...versions.slice(4).map(rate)); // all four lose a word
    return ranked.reduce((a, b) => ((b.numLost - a.numLost || b.numDoubtful - a.numDoubtful || a.logProb - b.logProb) < 0 ? b : a));
  }

  // Join the translations of sentences, with the white space between the sentences.
  function joinTexts(sentences, texts) {
    let line = '';
    texts.forEach((text, number) => {
      const space = /\s*$/u.exec(sentences[number - 1] ?? '')[0] || ' ';
      if (text) line += (line && run.spaces_sentences ? space : '') + text;
    });
    return line;
  }
  // Translate sentences. All options except `beamSize` concern the first sentence only. The attention of all sentences is joined
  // into a matrix whose last column is the end of each sentence.
  function translateWhole(sentences, options) {
    const results = sentences.map((sentence, number) => translateSentence(sentence, number ? { beamSize: options.beamSize } : options));
    if (results.length === 1) return results[0];
    const [source, tokens] = ['source', 'tokens'].map((side) => results.flatMap((result) => result[side]));
    let before = 0; // number of source positions of the sentences before
    const weights = results.flatMap((result, number) => {
      const written = number < results.length - 1 ? result.weights.slice(0, result.tokens.length) : result.weights; // only the last sentence keeps its end
      const rows = written.map((row) => {
        const whole = new Float32Array(source.length + 1);
        whole.set(row.subarray(0, -1), before);
        whole[source.length] = row.at(-1);
        return whole;
      });
      before += result.source.length;
      return rows;
    });
    const logProb = results.reduce((sum, result) => sum + result.logProb, 0);
    return { source, tokens, text: joinTexts(sentences, results.map((result) => result.text)), logProb, weights };
  }
  function translate(line, options = {}) {
    const { sentences, text, standIns, isKept } = plan(line, options.beamSize);
    if (isKept) return { tokens: [], text, logProb: 0, weights: [] };
    return putBack(standIns, translateWhole(sentences, options));
  }
  // A sentence, its unknown words, whether it is longer than the package reads at once, and whether its translation is too short
  // by data/line_facts.py.
  function translatePart(sentence, { standIns, ...options }) {
    const read = translateSentence(sentence, options);
    const [from, to] = [read.source, read.tokens].map((tokens) => new TextEncoder().encode([...tokens, ''].join('\n')).length);
    const isShort = to < run.lines.ratio * from - run.lines.shortness * Math.sqrt(from);
    const result = putBack(standIns, read);
    return { ...result, isShort, isLong: read.source.length > run.max_length, unknown: result.source.map((token, s) => result.unknown[s] || standIns.has(bare(token))) };
  }
  return { ...one, plan, sentencesOf, joinTexts, translate, translatePart };
}
