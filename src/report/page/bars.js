// Bars by category: side by side or stacked, upright or lying.

// In at most two lines.
function wrapped(text, width, size) {
  if (textWidth(text, size) <= width) return [text];
  const words = text.split(/(?<=[\s\-_/·,])/);
  let first = '';
  while (words.length > 1 && textWidth(first + words[0], size) <= width) first += words.shift();
  if (!first) return [fitted(text, width, size)];
  return [first.trim(), fitted(words.join(''), width, size)];
}

// What is drawn: for each category and series {category, series, from, to, value, point}, and the categories in which a
// series, or a whole stack, has no value.
function barMarks(figure, shown, categories) {
  const bars = [], missing = [];
  categories.forEach((_, category) => {
    let above = 0, below = 0, any = false;
    shown.forEach((series, place) => {
      const point = series.points.find(each => each[0] === category && each[1] !== null && (!figure.y.log || each[1] > 0));
      if (!point) {
        if (!figure.stacked) missing.push({category: category, place: place});
        return;
      }
      any = true;
      const from = figure.stacked ? (point[1] >= 0 ? above : below) : 0;
      if (figure.stacked) point[1] >= 0 ? above += point[1] : below += point[1];
      bars.push({category: category, place: place, series: series, from: from, to: from + point[1], point: point});
    });
    if (figure.stacked && !any) missing.push({category: category, place: 0});
  });
  return {bars: bars, missing: missing};
}

function drawBars(figure, box, state) {
  const categories = figure.x.categories || [];
  const shown = figure.series.map((series, index) => ({...series, look: {...state.looks[index], style: 'box'}, index: index})).filter(series => state.visible(series.index));
  const {bars, missing} = barMarks(figure, shown, categories);
  const values = bars.flatMap(bar => [bar.to, ...(figure.stacked ? [] : [bar.point[2], bar.point[3]])]).filter(value => typeof value === 'number');
  const value = makeAxis(figure.y, values, {zero: true, tickSpace: figure.horizontal ? 70 : 42});
  const count = figure.stacked ? 1 : Math.max(1, shown.length);
  const width = box.clientWidth;
  // Upright bars need room for themselves and for the names below them.
  const perCategory = (width - 80) / Math.max(1, categories.length);
  const tooFull = perCategory * 0.8 / count < 7 || categories.some(name => wrapped(name, perCategory - 6, 11.5).some(line => line.endsWith('…')));
  const layout = figure.horizontal || tooFull ? lyingBars : uprightBars;
  return layout({figure: figure, box: box, categories: categories, shown: shown, bars: bars, missing: missing, value: value, count: count, perCategory: perCategory});
}

function barBands(categories, count, length, least) {
  const outer = d3.scaleBand().domain(d3.range(categories.length)).range([0, length]).paddingInner(0.28).paddingOuter(0.14);
  const inner = d3.scaleBand().domain(d3.range(count)).range([0, outer.bandwidth()]).paddingInner(count > 1 ? 0.1 : 0);
  const wide = Math.min(inner.bandwidth(), least);
  // Few categories would make slabs: bars stay slim, in the middle of their band.
  const start = (category, place) => outer(category) + outer.bandwidth() / 2 + (place - count / 2) * Math.min(inner.step(), wide * 1.1) + (Math.min(inner.step(), wide * 1.1) - wide) / 2;
  return {outer: outer, wide: wide, start: start};
}

function barLines(figure, bar, categories) {
  const lines = [{text: bar.series.name, strong: true, look: bar.series.look}, {text: categories[bar.category]}];
  [bar.point[4], bar.point[5]].filter(Boolean).forEach(text => lines.push({text: text}));
  lines.push([figure.y.title || 'value', quantityText(bar.point[1], figure.y.unit)]);
  if (typeof bar.point[2] === 'number' && typeof bar.point[3] === 'number') {
    lines.push(['95% interval', quantityText(bar.point[2], figure.y.unit) + ' – ' + quantityText(bar.point[3], figure.y.unit)]);
  }
  return lines;
}

// Draws all bars given how one is placed: `rect(bar)` gives [x, y, width, height].
function placeBars(plan, frame, bands, horizontal) {
  const {figure, value} = plan, hits = [];
  const clamp = number => Math.max(0, Math.min(horizontal ? frame.width : frame.height, number));
  const groups = new Map();
  const origin = figure.y.log ? (horizontal ? 0 : frame.height) : clamp(value.scale(0));
  for (const series of plan.shown) {
    const group = makeSvg('g', {class: 'series', 'data-series': series.index});
    group.style.setProperty('--c', series.look.color);
    groups.set(series.index, group);
    append(frame.plot, [group]);
  }
  const texts = makeSvg('g', {class: 'bar-texts'});
  for (const bar of plan.bars) {
    const a = figure.y.log && bar.from === 0 ? origin : clamp(value.scale(bar.from)), b = clamp(value.scale(bar.to));
    const across = bands.start(bar.category, figure.stacked ? 0 : bar.place), thick = bands.wide;
    const low = Math.min(a, b), size = Math.max(0.75, Math.abs(a - b));
    const rect = horizontal ? [low, across, size, thick] : [across, low, thick, size];
    append(groups.get(bar.series.index), [makeSvg('rect', {class: 'bar', x: rect[0], y: rect[1], width: rect[2], height: rect[3], 'fill-opacity': bar.series.look.shade})]);
    hits.push({box: [rect[0], rect[1], rect[0] + rect[2], rect[1] + rect[3]], x: horizontal ? b : across + thick / 2, y: horizontal ? across + thick / 2 : b, lines: () => barLines(figure, bar, plan.categories)});
    let end = b;
    if (!figure.stacked && typeof bar.point[2] === 'number' && typeof bar.point[3] === 'number') {
      const l = clamp(value.scale(bar.point[2])), h = clamp(value.scale(bar.point[3])), middle = across + thick / 2;
      const cap = Math.min(4, thick / 3);
      end = horizontal ? Math.max(b, h) : Math.min(b, h);
      if (Math.abs(l - h) >= 2) append(groups.get(bar.series.index), [makeSvg('path', {class: 'error-ink', d: horizontal
        ? 'M' + l + ',' + middle + 'H' + h + 'M' + l + ',' + (middle - cap) + 'v' + 2 * cap + 'M' + h + ',' + (middle - cap) + 'v' + 2 * cap
        : 'M' + middle + ',' + l + 'V' + h + 'M' + (middle - cap) + ',' + l + 'h' + 2 * cap + 'M' + (middle - cap) + ',' + h + 'h' + 2 * cap})]);
    }
    const text = figure.y.log ? quantityShort(bar.point[1], figure.y.unit) : numberText(bar.point[1] / value.factor, 3);
    if (figure.stacked || (horizontal ? thick < 10 : thick < textWidth(text, 10.5) - 4)) continue;
    append(texts, [horizontal ? makeSvg('text', {x: end + 5, y: across + thick / 2, dy: '0.34em'}, text)
      : makeSvg('text', {x: across + thick / 2, y: end - 5, 'text-anchor': 'middle'}, text)]);
  }
  for (const gap of plan.missing) {
    const middle = bands.start(gap.category, gap.place) + bands.wide / 2;
    append(texts, [horizontal ? makeSvg('text', {class: 'missing', x: origin + 5, y: middle, dy: '0.34em'}, 'n/a')
      : makeSvg('text', {class: 'missing', 'text-anchor': bands.wide < 18 ? 'start' : 'middle', dy: bands.wide < 18 ? '0.34em' : 0,
        transform: 'translate(' + middle + ',' + (origin - 5) + ')' + (bands.wide < 18 ? ' rotate(-90)' : '')}, 'n/a')]);
  }
  append(frame.plot, [texts]);
  return {svg: frame.svg, plot: frame.plot, hits: hits, left: frame.left, top: frame.top};
}

function uprightBars(plan) {
  const {figure, categories, value} = plan;
  const names = categories.map(name => wrapped(name, plan.perCategory - 6, 11.5));
  const two = names.some(lines => lines.length > 1) ? 14 : 0;
  const band = {scale: d3.scaleLinear().domain([0, 1]), title: axisTitle(figure.x.title, figure.x.unit), ticks: () => []};
  const frame = makeFrame(plan.box, figure, {x: band, y: value, height: 350 + two, bottom: two, xBare: true, xTicks: []});
  const bands = barBands(categories, plan.count, frame.width, 64);
  names.forEach((lines, index) => lines.forEach((line, row) => append(frame.plot, [makeSvg('text', {class: 'category',
    x: bands.outer(index) + bands.outer.bandwidth() / 2, y: frame.height + 17 + 14 * row, 'text-anchor': 'middle'}, line)])));
  return placeBars(plan, frame, bands, false);
}

function lyingBars(plan) {
  const {figure, categories, value} = plan;
  const thick = plan.count === 1 ? 20 : plan.count <= 3 ? 15 : 11;
  const length = categories.length * (plan.count * thick * 1.1 + (plan.count === 1 ? 8 : 14)) + 10;
  const most = Math.min(plan.box.clientWidth * 0.42, 260);
  const names = categories.map(name => wrapped(name, most, 11.5));
  const left = d3.max(names.flat(), line => textWidth(line, 11.5)) + 14 || 60;
  const band = {scale: d3.scaleLinear().domain([0, 1]), title: axisTitle(figure.x.title, figure.x.unit), ticks: () => []};
  const frame = makeFrame(plan.box, figure, {x: value, y: band, height: length + 76, left: left, yBare: true, yTicks: [], down: true, right: figure.stacked ? 14 : 52});
  const bands = barBands(categories, plan.count, frame.height, thick);
  names.forEach((lines, index) => lines.forEach((line, row) => append(frame.plot, [makeSvg('text', {class: 'category', x: -8,
    y: bands.outer(index) + bands.outer.bandwidth() / 2 + 14 * (row - (lines.length - 1) / 2), dy: '0.34em', 'text-anchor': 'end'}, line)])));
  return placeBars(plan, frame, bands, true);
}
