// data.js - unpacks the recording (report_html_data.c wrote it) into typed arrays.
const $ = (id) => document.getElementById(id);
const raw = JSON.parse($('data').textContent);
$('data').remove();

// A text of the page in the language of the report; raw.words holds those that differ from English.
const T = (english) => raw.words[english] || english;

// Differences as zigzag LEB128 of 64-bit values that wrap around, in base64.
function unpack(text, count) {
  const bytes = atob(text || '');
  const lo = new Uint32Array(count), hi = new Uint32Array(count);
  let at = 0, valueLo = 0, valueHi = 0;
  for (let i = 0; i < count; i++) {
    let wordLo = 0, wordHi = 0, shift = 0, byte;
    do {
      byte = bytes.charCodeAt(at++);
      const bits = byte & 127;
      if (shift < 28) wordLo |= bits << shift;
      else if (shift === 28) { wordLo |= bits << 28; wordHi |= bits >>> 4; }
      else wordHi |= bits << (shift - 32);
      shift += 7;
    } while (byte & 128);
    const sign = -(wordLo & 1);
    const plusLo = (((wordLo >>> 1) | (wordHi << 31)) ^ sign) >>> 0;
    const plusHi = ((wordHi >>> 1) ^ sign) >>> 0;
    const sum = valueLo + plusLo;
    valueLo = sum >>> 0;
    valueHi = (valueHi + plusHi + (sum > 0xffffffff ? 1 : 0)) >>> 0;
    lo[i] = valueLo;
    hi[i] = valueHi;
  }
  return { lo, hi };
}

function unpackNumbers(text, count) {
  const { lo, hi } = unpack(text, count);
  const out = new Float64Array(count);
  for (let i = 0; i < count; i++) out[i] = hi[i] * 4294967296 + lo[i];
  return out;
}

const unpackSmall = (text, count) => unpack(text, count).lo;
const valueOf = (pair, i) => pair.hi[i] * 4294967296 + pair.lo[i]; // exact below 2^53
const isNone = (pair, i) => pair.lo[i] === 0xffffffff && pair.hi[i] === 0xffffffff;
const hexOf = (pair, i) => '0x' + (pair.hi[i] ? pair.hi[i].toString(16) + pair.lo[i].toString(16).padStart(8, '0')
                                               : pair.lo[i].toString(16));

const count = raw.count;
const ev = {
  seq: unpackNumbers(raw.events.seq, count), // number in the recording
  t: unpackNumbers(raw.events.t, count),     // ns from its start
  took: unpackNumbers(raw.events.took, count),
  kind: unpackSmall(raw.events.kind, count),
  detail: unpackSmall(raw.events.detail, count), // 16: captured
  fn: unpackSmall(raw.events.fn, count),         // into raw.functions, from 1
  status: unpackSmall(raw.events.status, count),
  stream: unpackSmall(raw.events.stream, count),
  thread: unpackSmall(raw.events.thread, count),
  name: unpackSmall(raw.events.name, count), // into raw.names, from 1
  site: unpackSmall(raw.events.site, count),
  dst: unpack(raw.events.dst, count),
  src: unpack(raw.events.src, count),
  len: unpack(raw.events.len, count),
  step: unpackSmall(raw.events.step, count), // plus one; 0: unknown
  layer: unpackSmall(raw.events.layer, count),
};
const touchedCount = unpackSmall(raw.events.touchedCount, count);
const touchedFrom = new Uint32Array(count + 1); // into touched
for (let i = 0; i < count; i++) touchedFrom[i + 1] = touchedFrom[i] + touchedCount[i];
const touched = unpackSmall(raw.events.touched, touchedFrom[count]); // blocks

const blockCount = raw.blockCount;
const block = {
  base: unpack(raw.blocks.base, blockCount),
  bytes: unpackNumbers(raw.blocks.bytes, blockCount),
  begin: unpackNumbers(raw.blocks.begin, blockCount), // event
  end: unpackNumbers(raw.blocks.end, blockCount),     // event plus one; 0: it lives
  from: unpackNumbers(raw.blocks.from, blockCount),   // ns
  to: unpackNumbers(raw.blocks.to, blockCount),
  name: unpackSmall(raw.blocks.name, blockCount),
  site: unpackSmall(raw.blocks.site, blockCount),
  family: unpackSmall(raw.blocks.family, blockCount), // 16: a tensor
};

const PENDING = 0xffff;
const kindOf = (i) => raw.kinds[ev.kind[i]] || { text: '?' + ev.kind[i], doc: '', name: '', dst: ['x', 'dst'], src: ['x', 'src'], len: ['x', 'len'], details: [] };
const nameText = (n) => (n ? raw.names[n - 1] : '');
const siteText = (n) => (n ? raw.sites[n - 1] : '');
const callText = (i) => (ev.fn[i] ? raw.functions[ev.fn[i] - 1] : '');
const failed = (i) => ev.status[i] !== 0 && ev.status[i] !== PENDING;

function statusText(i) {
  const code = ev.status[i];
  if (code === PENDING) return 'pending';
  if (!ev.fn[i] && !code) return '';
  return raw.statuses[code] || 'error' + code;
}

function detailText(i) {
  const text = kindOf(i).details[ev.detail[i] & 15];
  return (text || '') + (ev.detail[i] & 16 ? ' captured' : '');
}

// A tensor's or kernel's own name, else that of the first named block it touches.
function titleOf(i) {
  if (ev.name[i]) return nameText(ev.name[i]);
  for (let k = touchedFrom[i]; k < touchedFrom[i + 1]; k++)
    if (block.name[touched[k]]) return nameText(block.name[touched[k]]);
  return '';
}

function bytesText(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let u = 0, x = n;
  while (x >= 1024 && u < 4) { x /= 1024; u++; }
  return (u && x < 100 && x % 1 ? x.toFixed(1) : Math.round(x)) + ' ' + units[u];
}

function fieldText(field, pair, i) {
  if (!field[0]) return '';
  if (field[0] === 'x') return hexOf(pair, i);
  if (field[0] === 'e') return isNone(pair, i) ? '?' : '#' + valueOf(pair, i);
  if (field[0] === 'i') return String(BigInt.asIntN(64, (BigInt(pair.hi[i]) << 32n) | BigInt(pair.lo[i])));
  return String(valueOf(pair, i));
}

// "D2H dst=0x… src=0x… bytes=4096"
function whatText(i) {
  const k = kindOf(i), parts = [detailText(i)];
  for (const f of ['dst', 'src', 'len'])
    if (k[f][0]) parts.push(k[f][1] + '=' + fieldText(k[f], ev[f], i));
  return parts.filter(Boolean).join(' ');
}

const secondsText = (ns) => (ns / 1e9).toFixed(6);

// The index of the event with that number, -1 if it is not here.
function indexOf(seq) {
  let a = 0, b = count;
  while (a < b) {
    const m = (a + b) >> 1;
    if (ev.seq[m] < seq) a = m + 1; else b = m;
  }
  return a < count && ev.seq[a] === seq ? a : -1;
}
// The first index whose number is not below.
function indexAtOrAfter(seq) {
  let a = 0, b = count;
  while (a < b) {
    const m = (a + b) >> 1;
    if (ev.seq[m] < seq) a = m + 1; else b = m;
  }
  return a;
}

// Layers by name ("blk.5.attn_k") where the recording does not say.
const layerOfName = raw.names.map((text) => {
  const m = /(?:^|[^a-z])(?:blk|blocks?|layers?)[._-]?(\d+)/i.exec(text);
  return m ? Number(m[1]) : -1;
});
function layerOf(i) {
  if (ev.layer[i]) return ev.layer[i] - 1;
  if (ev.name[i] && layerOfName[ev.name[i] - 1] >= 0) return layerOfName[ev.name[i] - 1];
  for (let k = touchedFrom[i]; k < touchedFrom[i + 1]; k++) {
    const n = block.name[touched[k]];
    if (n && layerOfName[n - 1] >= 0) return layerOfName[n - 1];
  }
  return -1;
}

// Kinds in groups: the colours of the timeline and its filter.
const GROUPS = [
  { id: 'launch', label: T('kernels'), kinds: [33] },
  { id: 'copy', label: T('copies'), kinds: [30, 31, 37, 38] },
  { id: 'set', label: T('sets'), kinds: [32] },
  { id: 'memory', label: T('memory'), kinds: [20, 21, 22, 23, 83] },
  { id: 'sync', label: T('order'), kinds: [50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60] },
  { id: 'graph', label: T('graphs'), kinds: [70, 71, 72, 73, 74, 75, 76, 77, 78] },
  { id: 'host', label: T('host'), kinds: [24, 25, 34, 35, 36] },
  { id: 'fault', label: T('faults and losses'), kinds: [2, 39] },
  { id: 'other', label: T('other calls'), kinds: [] },
];
const groupOfKind = new Uint8Array(65536).fill(GROUPS.length - 1);
GROUPS.forEach((g, n) => g.kinds.forEach((k) => { groupOfKind[k] = n; }));

const FAMILIES = ['unknown', 'device', 'pinned', 'registered', 'managed', 'async', 'pitched', 'array', 'imported', 'symbol', 'virtual', 'graph'];
const FAMILY_COLOURS = ['other', 'copy', 'sync', 'host', 'graph', 'set', 'launch', 'launch', 'memory', 'memory', 'other', 'graph'];
