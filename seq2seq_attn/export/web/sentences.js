// Split a line into sentences by the rules of text/sentences.py.
const MARKS = '։؝؞؟۔܀܁܂߹।॥၊။።፧፨᙮᜵᜶។៕᠃᠉᥄᥅᪨᪩᪪᪫᭚᭛᭞᭟᰻᰼᱾᱿‼‽⁇⁈⁉⸮⸼。꓿꘎꘏꛳꛷꡶꡷꣎꣏꤯꧈꧉꩝꩞꩟꫰꫱ꫯ﹒﹖﹗！．？｡';
const CLOSERS = `(?:[\\])}"'”’›」』】》〉）］｣*_¹²³]|(?:[“‘«»‹]|[ \\u00a0\\u202f][»›])(?![\\p{L}\\p{N}_])|\\[\\p{Nd}+\\])*`;
const OTHER_MARK = '(?<=[\\u0370-\\u03ff\\u1f00-\\u1fff]);|(?<=[\\u0531-\\u058f]):|፡፡|(?<=[\\u0900-\\u0dff] ?)\\|';
const [UPPER, UNSPACED] = ['A-ZÀ-ÖØ-ÞĆČĐĞİŁŃŐŘŚŞŠŤŮŰŹŻŽΑ-ΫЀ-Я', 'ぁ-ヿ㐀-鿿가-힣'];
const AFTER = `(?<=[\\p{L}\\p{Nl}\\p{No}])(?<![${UPPER}])(?=[.!?]+[${UPPER}](?![${UPPER}])[\\p{L}\\p{Nl}\\p{No}]*(?:\\s|$))`;
const JOINED = `(?:(?<=[${UNSPACED}])(?=[.!?]+[${UNSPACED}])|${AFTER})[.!?]+`; // marks without a space after them
const OTHER_END = `(?<![.!?…${MARKS}])(?=[.!?…]*[${MARKS}])(?=([.!?…${MARKS}]+${CLOSERS}))\\1\\s*(?!(?<=．)\\p{Nd})(?=\\S)`;
const COMMON_END = `(?:(?<![.!?…])[.!?…]+|${OTHER_MARK})(?=(${CLOSERS}))\\2\\s+(?=\\S)`;
const SENTENCE_END = new RegExp(`${OTHER_END}|${COMMON_END}|${JOINED}`, 'gu');
const WORDS_BEFORE_A_STOP = [
  '(?<!\\p{Nd}\\s)\\p{L}', '(?![ap]\\.m\\.)\\p{L}{1,3}(?:\\.-?\\p{L}{1,3})+',
  'bijv|bzgl|bzw|ca|capt|dhr|dott|dra?|ee|gov|hr|ks|mgr|mlle|mmes?|mrs?|prof|sig|sra?|srta|st|str|tzn|vgl|vs|डॉ',
  '(?:abb|abs|art|bd|cap|ch|chap|fig|kap|nos?|nr|num|p[áa]gs?|pp|tel|vols?)(?=\\.\\p{Nd})',
  '(?:d(?:er|ie|as|en|em|es)|[ai]m|[vz]om|zu[mr]|beim|jede[rs]?)\\s\\p{Nd}\\p{Nd}?',
];
const BEGINS = '(?<![\\p{L}\\p{N}_.])'; // the beginning of a word
const ABBREVIATIONS = [
  new RegExp(`${BEGINS}(?:${WORDS_BEFORE_A_STOP.join('|')})\\.\\S$`, 'iu'),
  new RegExp(`${BEGINS}[B-DF-HJ-NP-TV-XZ][b-df-hj-np-tv-xz]{1,4}\\.\\S$`, 'u'),
];
const WINDOW = 24; // number of characters before and after a mark that decide whether the mark ends the sentence
const CONTINUATION = /^(?:.[,;:]|[」』](?:と|って))/su; // after a quotation, Japanese goes on with a particle

function splitSentences(line) {
  const text = line.toWellFormed().replace(/[\p{Cc}\u2028\u2029]/gu, ' ');
  const part = text.replace(/[^\p{L}\p{N}]+$/u, ''); // marks at the end of the line do not separate sentences
  const isCased = text !== text.toLowerCase();
  const sentences = [];
  let start = 0;
  for (const end of part.matchAll(SENTENCE_END)) {
    const stop = end.index + end[0].length;
    const head = text.slice(start, Math.min(end.index, start + WINDOW)).trim(); // in a list, a number stands before each item
    if (!head || /^\p{Nd}+$/u.test(head) || goesOn(text, end, stop, isCased)) continue;
    sentences.push(text.slice(start, stop));
    start = stop;
  }
  return [...sentences, text.slice(start)];
}

// Whether the sentence goes on after a mark that may end it.
function goesOn(text, end, stop, isCased) {
  const following = text.slice(stop, stop + WINDOW).replace(/^["'“„«»‹([¿¡「『]+/u, '');
  if (CONTINUATION.test(text.slice(stop - 1, stop + 2)) || (isCased && /^\p{Lowercase}/u.test(following))) return true;
  const word = `${text.slice(Math.max(0, end.index - WINDOW), end.index)}.${String.fromCodePoint(text.codePointAt(stop))}`;
  return end[0].trimEnd() === '.' && ABBREVIATIONS.some((abbreviation) => abbreviation.test(word));
}
