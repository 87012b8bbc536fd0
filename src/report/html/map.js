// map.js - the allocation map: addresses over time. Address space that was never used is left out:
// blocks that share or touch addresses form a band, bands are stacked by address.

const BAND_GAP = 3, MAP_TOP = 22;

function baseNumber(b) { return valueOf(block.base, b); }

// Bands from the lowest address up: { from, to, height, y }, and the band of each block.
function makeBands() {
  const order = [];
  for (let b = 0; b < blockCount; b++) if (!(block.family[b] & 16)) order.push(b);
  order.sort((a, b) => baseNumber(a) - baseNumber(b));
  const bands = [], bandOf = new Int32Array(blockCount).fill(-1);
  for (const b of order) {
    const from = baseNumber(b), to = from + block.bytes[b];
    let band = bands[bands.length - 1];
    if (!band || from > band.to) bands.push(band = { from, to });
    band.to = Math.max(band.to, to);
    bandOf[b] = bands.length - 1;
  }
  for (let b = 0; b < blockCount; b++) {
    if (!(block.family[b] & 16)) continue;
    const at = baseNumber(b);
    let lo = 0, hi = bands.length;
    while (lo < hi) {
      const m = (lo + hi) >> 1;
      if (bands[m].to <= at) lo = m + 1; else hi = m;
    }
    if (lo < bands.length && bands[lo].from <= at) bandOf[b] = lo;
  }
  // Small blocks must be seen beside large ones: heights grow with the logarithm of the size.
  const weight = bands.map((band) => 2 + Math.max(0, Math.log2((band.to - band.from) / 4096)));
  const sum = weight.reduce((a, w) => a + w, 0) || 1;
  const room = Math.max(220, Math.min(3600, bands.length * 14));
  let y = 0;
  bands.forEach((band, n) => {
    band.height = Math.max(4, (weight[n] / sum) * room);
    band.y = y;
    y += band.height + BAND_GAP;
  });
  return { bands, bandOf, height: Math.max(60, y) };
}

function makeMap(canvas, scroller, app) {
  const { bands, bandOf, height } = makeBands();
  const all = () => MAP_TOP + height + 6;
  const culpritAt = raw.culprit && raw.culprit.len ? parseInt(raw.culprit.address, 16) : 0;
  let selected = -1;

  const endsAt = (b) => {
    if (!block.end[b]) return app.byOrder ? count : app.extent;
    return app.byOrder ? indexAtOrAfter(block.end[b] - 1) : block.to[b];
  };
  const beginsAt = (b) => (app.byOrder ? indexAtOrAfter(block.begin[b]) : block.from[b]);
  // Low addresses at the bottom.
  const yOf = (band, address) => MAP_TOP + height - band.y - ((address - band.from) / (band.to - band.from)) * band.height;

  function rectOf(b, x) {
    const band = bands[bandOf[b]];
    if (!band) return null;
    const at = baseNumber(b), bottom = yOf(band, at), top = yOf(band, at + block.bytes[b]);
    return { left: x(beginsAt(b)), right: x(endsAt(b)), top, height: Math.max(2, bottom - top) };
  }

  let hatch = null, hatchTheme = '';
  function hatching(g) {
    if (hatch && hatchTheme === app.theme) return hatch;
    const tile = document.createElement('canvas');
    tile.width = tile.height = 6;
    const t = tile.getContext('2d');
    t.strokeStyle = app.colour('other');
    t.globalAlpha = 0.55;
    t.beginPath();
    t.moveTo(0, 6);
    t.lineTo(6, 0);
    t.stroke();
    hatchTheme = app.theme;
    hatch = g.createPattern(tile, 'repeat');
    return hatch;
  }

  function drawBlock(g, b, x, width) {
    const r = rectOf(b, x);
    if (!r || r.left > width) return;
    const left = Math.max(LABEL_WIDTH, r.left), right = Math.min(width, Math.max(r.right, r.left + 1));
    const tensor = block.family[b] & 16;
    if (block.end[b] && !tensor && r.right < width) {
      g.fillStyle = app.colour('paper');
      g.fillRect(Math.max(LABEL_WIDTH, r.right), r.top, width - r.right, r.height);
      g.fillStyle = hatching(g);
      g.fillRect(Math.max(LABEL_WIDTH, r.right), r.top, width - r.right, r.height);
    }
    if (right <= LABEL_WIDTH || right <= left) return;
    if (tensor) {
      if (r.height >= 4) {
        g.strokeStyle = app.colour('paper');
        g.strokeRect(left + 0.5, Math.round(r.top) + 0.5, right - left - 1, Math.max(1, r.height - 1));
      }
    } else {
      g.fillStyle = app.colour(FAMILY_COLOURS[block.family[b] & 15] || 'other');
      g.globalAlpha = 0.75;
      g.fillRect(left, r.top, right - left, r.height);
      g.globalAlpha = 1;
    }
    if (r.height >= 11 && right - left > 40 && block.name[b]) {
      g.fillStyle = app.colour('paper');
      const room = Math.floor((right - left - 8) / 6.7), text = nameText(block.name[b]);
      g.fillText(text.length > room ? text.slice(0, Math.max(1, room - 1)) + '…' : text, left + 4, r.top + Math.min(r.height / 2, 9));
    }
    if (b === selected || block.begin[b] === raw.block) {
      g.strokeStyle = app.colour(b === selected ? 'ink' : 'culprit');
      g.lineWidth = 2;
      g.strokeRect(left + 1, r.top + 1, Math.max(2, right - left - 2), Math.max(2, r.height - 2));
      g.lineWidth = 1;
    }
  }

  // The bytes the culprit touched, at its time: also where they leave the block.
  function drawCulprit(g, x, width) {
    if (app.culprit < 0 || !culpritAt) return;
    const at = x(app.byOrder ? app.culprit : ev.t[app.culprit]);
    const band = bands.find((d) => culpritAt >= d.from && culpritAt < d.to) || bands.find((d) => culpritAt < d.to);
    if (!band || at < LABEL_WIDTH || at > width) return;
    const bottom = yOf(band, culpritAt), top = Math.max(MAP_TOP - 4, yOf(band, culpritAt + raw.culprit.len));
    g.strokeStyle = app.colour('culprit');
    g.lineWidth = 3;
    g.beginPath();
    g.moveTo(at, bottom);
    g.lineTo(at, top);
    g.moveTo(at - 4, bottom);
    g.lineTo(at + 4, bottom);
    g.moveTo(at - 4, top + 1);
    g.lineTo(at + 4, top + 1);
    g.stroke();
    g.lineWidth = 1;
  }

  function xOf(width) {
    const scale = (width - LABEL_WIDTH) / (app.view.to - app.view.from);
    return (v) => LABEL_WIDTH + (v - app.view.from) * scale;
  }

  function drawLabels(g) {
    g.fillStyle = app.colour('panel');
    g.fillRect(0, 0, LABEL_WIDTH - 2, all());
    g.fillStyle = app.colour('soft');
    g.font = '11px ui-monospace, monospace';
    g.textAlign = 'left';
    let last = Infinity;
    for (const band of bands) {
      const y = MAP_TOP + height - band.y - band.height / 2;
      if (last - y < 13) continue;
      last = y;
      g.fillText('0x' + band.from.toString(16) + ' ' + bytesText(band.to - band.from), 8, y);
    }
    if (!bands.length) g.fillText(T('no allocations'), 8, MAP_TOP + 20);
  }

  function draw() {
    const { g, width } = sizeCanvas(canvas, all());
    const x = xOf(width);
    g.fillStyle = app.colour('paper');
    g.fillRect(0, 0, width, all());
    drawAxis(g, app, x, width, 2, all());
    g.font = '11px ui-monospace, monospace';
    g.textBaseline = 'middle';
    const top = scroller.scrollTop - 40, bottom = scroller.scrollTop + scroller.clientHeight + 40;
    for (let b = 0; b < blockCount; b++) {
      const band = bands[bandOf[b]];
      if (!band) continue;
      const y = MAP_TOP + height - band.y;
      if (y < top || y - band.height > bottom) continue;
      drawBlock(g, b, x, width);
    }
    drawCulprit(g, x, width);
    drawLabels(g);
  }

  function hit(px, py) {
    const x = xOf(canvas.clientWidth);
    let best = -1;
    for (let b = 0; b < blockCount; b++) {
      const r = rectOf(b, x);
      if (!r || py < r.top - 1 || py > r.top + r.height + 1 || px < r.left - 2 || px < LABEL_WIDTH) continue;
      if (px <= r.right + 2 || (block.end[b] && best < 0)) best = b; // the latest one drawn there
    }
    return best;
  }

  function text(b) {
    const tensor = block.family[b] & 16;
    const lines = [(tensor ? T('tensor') + ' ' : T('memory') + ' ' + (FAMILIES[block.family[b] & 15] || '?') + ' ') + nameText(block.name[b]),
      hexOf(block.base, b) + ', ' + bytesText(block.bytes[b]) + ' (' + block.bytes[b] + ')',
      T(tensor ? 'named by' : 'allocated by') + ' #' + block.begin[b] + ' ' + T('at') + ' ' + secondsText(block.from[b]) + ' s'];
    if (block.end[b]) lines.push(T(tensor ? 'ended by' : 'freed by') + ' #' + (block.end[b] - 1) + ' ' + T('at') + ' ' + secondsText(block.to[b]) + ' s');
    else lines.push(T('alive at the end'));
    if (block.site[b]) lines.push(T('from') + ' ' + siteText(block.site[b]));
    return lines;
  }

  scroller.addEventListener('scroll', () => app.changed());
  return {
    draw, hit, text,
    select(b) { selected = b; },
    step(by) { return Math.min(blockCount - 1, Math.max(0, (selected < 0 ? (by > 0 ? -1 : blockCount) : selected) + by)); },
  };
}
