// Scales with their ticks, and the frame of a plot: grid, ticks, axis titles.

// The next 1, 2 or 5 times a power of ten below or above.
function roundLog(value, up) {
  const power = Math.pow(10, Math.floor(Math.log10(value) + 1e-9));
  const steps = [1, 2, 5, 10].map(step => step * power);
  return up ? steps.find(step => step >= value * 0.9999) : steps.reverse().find(step => step <= value * 1.0001);
}

function isPowerOfTwo(value) {
  return value >= 1 && Number.isInteger(Math.log2(value));
}

// `values`: all that must be seen. `options`: {zero: bars and areas begin there, tight: no rounding of the ends,
// tickSpace: pixels a tick wants}. Gives {scale, ticks(pixels), title, factor: of the title's prefix}.
function makeAxis(axis, values, options = {}) {
  let [low, high] = d3.extent(values.filter(value => value !== null && isFinite(value) && (!axis.log || value > 0)));
  if (low === undefined) [low, high] = axis.log ? [1, 10] : [0, 1];
  const distinct = [...new Set(values)];
  return axis.log ? logAxis(axis, low, high, distinct, options) : linearAxis(axis, low, high, distinct, options);
}

function axisTitle(title, unit) {
  return !unit ? title : title ? title + ' (' + unit + ')' : unit;
}

function linearAxis(axis, low, high, distinct, options) {
  // From zero, unless the values are a narrow band far from it.
  if (!options.tight && low >= 0 && (options.zero || low < 0.6 * high)) low = 0;
  if (options.zero && high <= 0) high = 0;
  if (low === high) [low, high] = low === 0 ? [0, 1] : [low - Math.abs(low) * 0.1, high + Math.abs(high) * 0.1];
  const scale = d3.scaleLinear().domain([low, high]);
  if (!options.tight) scale.nice(5);
  const domain = scale.domain();
  if (axis.low !== undefined) domain[0] = axis.low;
  if (axis.high !== undefined) domain[1] = axis.high;
  scale.domain(domain);
  const whole = options.whole && distinct.every(Number.isInteger);
  const [prefix, factor] = plainUnits.has(axis.unit) ? prefixFor(Math.max(Math.abs(domain[0]), Math.abs(domain[1]))) : ['', 1];
  return {
    scale: scale, title: axisTitle(axis.title, axis.unit ? prefix + axis.unit : ''), factor: factor,
    ticks: pixels => {
      const count = Math.max(2, Math.min(8, Math.floor(pixels / (options.tickSpace || 60))));
      const scaled = d3.scaleLinear().domain(scale.domain().map(value => value / factor));
      const format = scaled.tickFormat(count);
      return scaled.ticks(count).filter(value => !whole || Number.isInteger(value))
        .map(value => ({value: value * factor, text: whole ? numberText(value) : format(value), strong: value === 0}));
    }
  };
}

function logAxis(axis, low, high, distinct, options) {
  if (low === high) [low, high] = [low / 2, high * 2];
  const powersOfTwo = distinct.length > 1 && distinct.length <= 12 && distinct.every(isPowerOfTwo);
  const domain = options.tight ? [low, high]
    : powersOfTwo ? [low / 1.2, high * 1.2] : [roundLog(low * 0.93, false), roundLog(high * 1.07, true)];
  if (axis.low > 0) domain[0] = axis.low;
  if (axis.high > 0) domain[1] = axis.high;
  const scale = d3.scaleLog().domain(domain);
  return {
    scale: scale, title: axisTitle(axis.title, axis.unit), factor: 1,
    ticks: pixels => {
      const perDecade = pixels / Math.log10(domain[1] / domain[0]), space = options.tickSpace || 60;
      if (powersOfTwo) return distinct.slice().sort((a, b) => a - b).map(value => ({value: value, text: numberText(value)}));
      const ticks = [];
      // Decades that would touch each other are left out evenly.
      const every = Math.max(1, Math.ceil(space * 0.62 / perDecade));
      for (let power = Math.floor(Math.log10(domain[0]) + 1e-9); Math.pow(10, power) <= domain[1] * 1.0001; ++power) {
        for (const step of [1, 2, 5]) {
          const value = step * Math.pow(10, power);
          if (value < domain[0] * 0.9999 || value > domain[1] * 1.0001) continue;
          if (step > 1 && perDecade < space * 0.9) continue;
          const named = step === 1 ? power % every === 0 : perDecade >= space * 2.4;
          ticks.push({value: value, text: named ? powerText(value, axis.unit, domain[1] >= 1e6) : '', faint: step > 1});
        }
      }
      return ticks;
    }
  };
}

// The frame of a plot in `box`, its figure's drawing area. `layout`: {x, y: axes, height, left, bottom, top, right:
// least margins, xTicks, yTicks: own ticks, clipMargin}. Gives {svg, plot: group inside the margins, width, height}.
function makeFrame(box, figure, layout) {
  const width = Math.max(240, box.clientWidth);
  const height = layout.height;
  const top = layout.top === undefined ? 30 : layout.top, bottom = (layout.bottom || 0) + 46;
  const innerHeight = height - top - bottom;
  const yTicks = layout.yTicks || layout.y.ticks(innerHeight);
  const left = Math.ceil(Math.max(layout.left || 0, d3.max(yTicks, tick => textWidth(tick.text, 11.5)) + 12 || 0));
  const right = layout.right || 14;
  const innerWidth = width - left - right;
  layout.x.scale.range([0, innerWidth]);
  layout.y.scale.range(layout.down ? [0, innerHeight] : [innerHeight, 0]);
  const xTicks = layout.xTicks || layout.x.ticks(innerWidth);

  const svg = makeSvg('svg', {class: 'plot', viewBox: '0 0 ' + width + ' ' + height, width: width, height: height,
    role: 'img', 'aria-label': describeFigure(figure)});
  const plot = makeSvg('g', {transform: 'translate(' + left + ',' + top + ')'});
  // Marks at the ends of the axes are whole.
  const clip = figure.id + '-clip', spill = layout.clipMargin || 0;
  append(svg, [makeSvg('defs', null, makeSvg('clipPath', {id: clip},
    makeSvg('rect', {x: -spill, y: -spill, width: innerWidth + 2 * spill, height: innerHeight + 2 * spill}))), plot]);

  const grid = makeSvg('g', {class: 'grid', 'aria-hidden': 'true'});
  const labels = makeSvg('g', {class: 'ticks', 'aria-hidden': 'true'});
  for (const tick of yTicks) {
    const y = layout.y.scale(tick.value);
    if (y === undefined || y < -0.5 || y > innerHeight + 0.5) continue;
    if (!layout.yBare) append(grid, [makeSvg('line', {x2: innerWidth, y1: y, y2: y, class: tick.faint ? 'faint' : null})]);
    append(labels, [makeSvg('text', {x: -8, y: y, dy: '0.32em', 'text-anchor': 'end'}, tick.text)]);
  }
  let free = -Infinity;
  for (const tick of xTicks) {
    const x = layout.x.scale(tick.value), half = textWidth(tick.text, 11.5) / 2;
    if (x === undefined || x < -0.5 || x > innerWidth + 0.5) continue;
    if (!layout.xBare) append(grid, [makeSvg('line', {y2: innerHeight, x1: x, x2: x, class: tick.faint ? 'faint' : null})]);
    if (!tick.text || x - half < free) continue;
    free = x + half + 6;
    // The first and the last may reach beyond the plot, not beyond the figure.
    const place = Math.max(half - left + 1, Math.min(x, innerWidth + right - 2 - half));
    append(labels, [makeSvg('text', {x: place, y: innerHeight + 17, 'text-anchor': 'middle'}, tick.text)]);
  }
  const title = fitted(layout.x.title, width - 8, 12, 500), titleWidth = textWidth(title, 12, 500) + 4;
  append(plot, [grid, makeSvg('line', {class: 'axis', x2: innerWidth, y1: innerHeight, y2: innerHeight}),
    makeSvg('line', {class: 'axis', y2: innerHeight}), labels,
    makeSvg('text', {class: 'axis-title', x: Math.max(titleWidth / 2 - left, Math.min(innerWidth / 2, innerWidth + right - titleWidth / 2)),
      y: height - top - 7, 'text-anchor': 'middle'}, title),
    makeSvg('text', {class: 'axis-title', x: -left + 2, y: -14}, fitted(layout.y.title, width - 8, 12, 500))]);
  return {svg: svg, plot: plot, width: innerWidth, height: innerHeight, left: left, top: top, clip: 'url(#' + clip + ')'};
}

// For those who cannot see it.
function describeFigure(figure) {
  const kinds = {xy: 'Plot', bars: 'Bar chart', area: 'Stacked areas', spans: 'Timeline', diagram: 'Diagram'};
  let text = figure.title + '. ' + kinds[figure.kind];
  if (figure.kind === 'diagram') return text + ' of ' + figure.nodes.length + ' boxes and ' + figure.edges.length + ' arrows.';
  if (figure.kind === 'spans') return text + ' of ' + figure.spans.length + ' spans on ' + figure.tracks.length + ' tracks.';
  text += ' of ' + axisTitle(figure.y.title, figure.y.unit) + ' by ' + axisTitle(figure.x.title, figure.x.unit) + '. Series: ';
  return text + figure.series.map(series => series.name).join(', ') + '.';
}
