// Join spaCy's words and punctuation into a line, by the rules of text/tokenizers/detokenize.py.
const setOf = (text) => new Set(text.split(' '));
const CLOSING = setOf(', . ; : ! ? ) ] } .. ... … ، ؛ ؟ ۔ । ॥ ։ ። ፣ ፤');
const SPACED_IN_FRENCH = setOf('; : ! ? « »');
const OPENING = setOf('( [ { ¿ ¡');
// The closing marks of each opening mark. A mark that closes itself opens a quotation if no quotation is open.
const QUOTES = { '"': '"', "'": "'", '“': '”', '”': '”“', '„': '“”', '‘': '’', '‚': '‘’', '«': '»', '»': '«', '``': "''" };
const ELIDING = setOf('ca fr it');
const CURRENCIES = setOf('$ £ € ¥');
const ENTITIES = setOf('amp quot lt gt apos nbsp');
const CLITICS = setOf("'s 're 've 'll 'd 'm n't");
const PRONOUNS = setOf('i you he she it we they what that who there where here how let');
const NEGATED = setOf('do does did is are was were has have had ca could wo would should must need ai might');
const SPLIT_WORDS = new Set(['can not', 'gon na', 'wan na', 'got ta', "y' all"]);
const BARE_CLITICS = setOf('s d m re ve ll');
const [NEITHER, LEFT, RIGHT, BOTH] = [[false, false], [true, false], [false, true], [true, true]];
const isLetterOrDigit = (text) => /^[\p{L}\p{N}]/u.test(text);
const hasLetterOrDigit = (text) => /[\p{L}\p{N}]/u.test(text);
const endsInDigit = (text) => /\p{Nd}$/u.test(text);
const beginsWithDigit = (text) => /^\p{Nd}/u.test(text);

function detokenized(tokens, language) {
  const openQuotes = [];
  let line = '';
  let glueNext = true;
  tokens.forEach((token, index) => {
    const [glueLeft, glueRight] = attachment(tokens, index, openQuotes, language);
    line += (glueLeft || glueNext ? '' : ' ') + token;
    glueNext = glueRight;
  });
  return line;
}

// Whether a token is written without a space on its left, and whether without a space on its right.
function attachment(tokens, index, openQuotes, language) {
  const [token, previous, following] = [tokens[index], tokens[index - 1] ?? '', tokens[index + 1] ?? ''];
  if (language === 'fr' && SPACED_IN_FRENCH.has(token)) return NEITHER;
  if (CLOSING.has(token)) return LEFT;
  if (OPENING.has(token)) return RIGHT;
  if (Object.hasOwn(QUOTES, token) || closes(token, openQuotes)) return quote(tokens, index, openQuotes);
  if (token === '/' || (token === '-' && isInsideWord(previous, following, language))) return BOTH;
  if (CURRENCIES.has(token)) return beginsWithDigit(following) && !endsInDigit(previous) ? RIGHT : NEITHER;
  if (token === '#') return isLetterOrDigit(following) ? RIGHT : NEITHER;
  if (token === '&') return ENTITIES.has(following.replace(/;$/u, '')) ? RIGHT : NEITHER;
  if (language === 'en' && token === '%') return endsInDigit(previous) ? LEFT : NEITHER;
  if (ELIDING.has(language) && token.length > 1 && /['’]$/u.test(token)) return RIGHT;
  if (language === 'fr' && /^-\p{L}/u.test(token)) return LEFT;
  return continuesWord(previous, token, language) ? LEFT : NEITHER;
}
const closes = (token, openQuotes) => openQuotes.length > 0 && QUOTES[openQuotes.at(-1)].includes(token);

function isInsideWord(previous, following, language) {
  if (language === 'de') return endsInDigit(previous) && beginsWithDigit(following);
  return hasLetterOrDigit(previous) && hasLetterOrDigit(following);
}

function continuesWord(previous, token, language) {
  const [before, clitic] = [previous.toLowerCase(), token.toLowerCase().replaceAll('’', "'")];
  if (language === 'de') return clitic === "'s";
  if (CLITICS.has(clitic) || SPLIT_WORDS.has(`${before} ${clitic}`)) return true;
  if (clitic === 'nt') return NEGATED.has(before);
  return BARE_CLITICS.has(clitic) && (PRONOUNS.has(before) || before === "'" || before === '’');
}

function quote(tokens, index, openQuotes) {
  const token = tokens[index];
  const rest = tokens.slice(index + 1);
  if (closes(token, openQuotes)) {
    openQuotes.pop();
    return LEFT;
  }
  if (token === "'" && !rest.includes(token)) return rest.length && beginsWithDigit(rest[0]) ? RIGHT : LEFT;
  const isPlural = index > 0 && /[szx]$/iu.test(tokens[index - 1]);
  if (token === "'" && isPlural && rest.filter((one) => one === token).length % 2 === 0) return LEFT;
  openQuotes.push(token);
  return RIGHT;
}
