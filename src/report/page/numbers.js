// Numbers as text, in tooltips.

const prefixes = [['P', 1e15], ['T', 1e12], ['G', 1e9], ['M', 1e6], ['k', 1e3], ['', 1], ['m', 1e-3], ['µ', 1e-6], ['n', 1e-9]];
// Units that take a prefix: others have one already, or none.
const plainUnits = new Set(['s', 'B', 'B/s', 'byte', 'bytes', 'byte/s', 'bytes/s', 'FLOP', 'FLOP/s', 'FLOPS', 'W', 'J', 'Hz', 'V', 'A']);

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
function quantityText(value, unit, digits) {
  if (!unit || value === null || value === undefined) return numberText(value, digits);
  if (unit === '%') return numberText(value, digits) + '%';
  if (!plainUnits.has(unit) || value === 0) return numberText(value, digits) + ' ' + unit;
  const [prefix, factor] = prefixes.find(each => Math.abs(value) >= each[1] * 0.9999) || prefixes[prefixes.length - 1];
  return numberText(value / factor, digits) + ' ' + prefix + unit;
}

function axisTitle(title, unit) {
  return !unit ? title : title ? title + ' (' + unit + ')' : unit;
}
