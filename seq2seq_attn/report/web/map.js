// Attention maps. A weight is stored in 8 bits; n zeros in a row are the two bytes 0, n.
function unpack(packed, size) {
  const bytes = atob(packed);
  const levels = new Uint8Array(size);
  let place = 0;
  for (let i = 0; i < bytes.length; i++) {
    const value = bytes.charCodeAt(i);
    if (value) levels[place++] = value;
    else place += bytes.charCodeAt(++i);
  }
  return levels;
}

function attentionOf(stored) {
  const [source, target] = [data.tokens[stored[0]], data.tokens[stored[1]]];
  return { source, target, levels: unpack(stored[2], source.length * target.length), unknown: stored[3], scale: stored[4] ?? 1 };
}

const floorNote = () =>
  (data.floor > 1 ? note(`To keep this file small, weights below ${(data.floor / 255).toFixed(2)} are left out.`) : '');
