// Numbers as text: in tooltips, on axes.

const prefixes = [['P', 1e15], ['T', 1e12], ['G', 1e9], ['M', 1e6], ['k', 1e3], ['', 1], ['m', 1e-3], ['µ', 1e-6], ['n', 1e-9]];
// Units that take a prefix: others have one already, or none.
const plainUnits = new Set(['s', 'B', 'B/s', 'byte', 'bytes', 'byte/s', 'bytes/s', 'FLOP', 'FLOP/s', 'FLOPS', 'W', 'J', 'Hz', 'V', 'A']);

function prefixFor(size) {
  return prefixes.find(([, factor]) => size >= factor * 0.9999) || prefixes[prefixes.length - 1];
}

const superscripts = {'-': '⁻', 0: '⁰', 1: '¹', 2: '²', 3: '³', 4: '⁴', 5: '⁵', 6: '⁶', 7: '⁷', 8: '⁸', 9: '⁹'};

// Significant digits, thousands separated, as the report's tables have them.
function numberText(value, digits = 4) {
  if (value === null || value === undefined || !isFinite(value)) return 'n/a';
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 1e15 || size < 1e-6) return value.toExponential(digits - 1).replace('e+', 'e');
  const places = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  const text = value.toLocaleString('en-US', {minimumFractionDigits: 0, maximumFractionDigits: Math.min(places, 12)});
  return text.replace('-', '−');
}

// With its unit: 3,200 s, or 3.2 GFLOP/s where the unit takes a prefix.
function quantityText(value, unit) {
  if (value === null || value === undefined) return 'n/a';
  if (!unit) return numberText(value);
  if (unit === '%') return numberText(value) + '%';
  if (!plainUnits.has(unit) || value === 0) return numberText(value) + ' ' + unit;
  const [prefix, factor] = prefixFor(Math.abs(value));
  return numberText(value / factor) + ' ' + prefix + unit;
}

// The same without the unit itself, which the axis has.
function quantityShort(value, unit) {
  if (!plainUnits.has(unit) || !value) return numberText(value, 3);
  const [prefix, factor] = prefixFor(Math.abs(value));
  return numberText(value / factor, 3) + prefix;
}

// Of ticks on a logarithmic axis: 0.01, 1,000, 10⁶; with prefixes where the unit takes them. `powers`: large ones
// stand on this axis, so that all are written alike.
function powerText(value, unit, powers) {
  if (plainUnits.has(unit)) {
    const [prefix, factor] = prefixFor(value);
    const ownUnit = unit.length === 1 || unit === 'Hz' ? prefix + unit : prefix;
    return numberText(value / factor) + (ownUnit ? '\u202f' + ownUnit : '');
  }
  if (value >= (powers ? 1e4 : 1e6) || value < 1e-4) {
    const exponent = Math.floor(Math.log10(value) + 1e-9), lead = Math.round(value / Math.pow(10, exponent));
    const power = '10' + String(exponent).split('').map(digit => superscripts[digit]).join('');
    return lead === 1 ? power : lead + '·' + power;
  }
  return numberText(value);
}

const textRuler = document.createElement('canvas').getContext('2d');
const fontFamily = getComputedStyle(document.documentElement).getPropertyValue('--sans');
function textWidth(text, size = 12, weight = 400) {
  textRuler.font = weight + ' ' + size + 'px ' + fontFamily;
  return textRuler.measureText(text).width;
}

// The text, cut so that it fits.
function fitted(text, width, size = 12, weight = 400) {
  if (textWidth(text, size, weight) <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (textWidth(text.slice(0, middle) + '…', size, weight) <= width) low = middle;
    else high = middle - 1;
  }
  return low > 0 ? text.slice(0, low).trimEnd() + '…' : '';
}
