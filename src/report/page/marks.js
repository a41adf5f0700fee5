// What a figure tells when it is pointed at. A mark is {series, x, y, lines()}, with `box` where it is a rectangle, or
// `column` where it is a place on the x axis. Figures are drawn already: their SVG says where values stand.

// "low high log from to": from values to pixels and back.
function scaleOf(text) {
  const [low, high, log, from, to] = text.split(' ').map(Number), bend = log ? Math.log : value => value;
  return {low: low, high: high, from: from, to: to, log: log,
    pixel: value => from + (bend(value) - bend(low)) / (bend(high) - bend(low)) * (to - from)};
}

function boxOf(rect) {
  const [x, y, width, height] = ['x', 'y', 'width', 'height'].map(name => Number(rect.getAttribute(name)));
  return {box: [x, y, x + width, y + height], x: x + width / 2, y: y};
}

function intervalLine(point, unit) {
  if (typeof point[2] !== 'number' || typeof point[3] !== 'number') return [];
  return [['95% interval', quantityText(point[2], unit) + ' – ' + quantityText(point[3], unit)]];
}

function pointMarks(view) {
  const {figure, x, y} = view;
  const shown = point => point[0] !== null && point[1] !== null && (!x.log || point[0] > 0) && (!y.log || point[1] > 0);
  return figure.series.flatMap((series, index) => series.style === 'roof' ? [] : series.points.filter(shown).map(point => ({
    series: index, x: x.pixel(point[0]), y: y.pixel(point[1]),
    lines: () => [view.nameLine(index), ...[point[4], point[5]].filter(Boolean).map(text => ({text: text})),
      [figure.x.title || 'x', figure.x.categories ? figure.x.categories[point[0]] : quantityText(point[0], figure.x.unit)],
      [figure.y.title || 'y', quantityText(point[1], figure.y.unit)], ...intervalLine(point, figure.y.unit)]
  })));
}

function barMarks(view) {
  const figure = view.figure;
  return [...view.svg.querySelectorAll('.bar')].map(bar => {
    const index = Number(bar.parentNode.dataset.series), category = Number(bar.dataset.category);
    const point = figure.series[index].points.find(each => each[0] === category && each[1] !== null);
    return {...boxOf(bar), series: index, lines: () => [view.nameLine(index), {text: figure.x.categories[category]},
      ...[point[4], point[5]].filter(Boolean).map(text => ({text: text})),
      [figure.y.title || 'value', quantityText(point[1], figure.y.unit)], ...intervalLine(point, figure.y.unit)]};
  });
}

// The value of a layer at x: between its points on a straight line or a step, nothing outside them.
function layerValue(series, x) {
  const after = series.points.findIndex(point => point[0] > x), a = series.points[(after < 0 ? series.points.length : after) - 1], b = series.points[after];
  if (!a) return 0;
  if (series.style === 'step' || a[0] === x) return a[1];
  return b ? a[1] + (b[1] - a[1]) * (x - a[0]) / (b[0] - a[0]) : 0;
}

// Pointing at an x tells the whole stack there.
function areaMarks(view) {
  const {figure, x} = view;
  const sorted = figure.series.map(series => ({...series, points: series.points.filter(point => point[0] !== null && point[1] !== null && (!x.log || point[0] > 0)).sort((a, b) => a[0] - b[0])}));
  const places = [...new Set(sorted.flatMap(series => series.points.map(point => point[0])))].sort((a, b) => a - b);
  return places.map(place => ({x: x.pixel(place), y: view.y.to, column: true, lines: () => {
    const values = sorted.map((series, index) => [series.name, view.visible(index) ? layerValue(series, place) : 0]).filter(each => each[1]);
    return [{text: (figure.x.title || 'x') + ' ' + quantityText(place, figure.x.unit), strong: true},
      ...values.slice().reverse().slice(0, 14).map(([name, value]) => [name, quantityText(value, figure.y.unit)]),
      ['Total', quantityText(values.reduce((sum, each) => sum + each[1], 0), figure.y.unit)]];
  }}));
}

function nodeMarks(view) {
  return [...view.svg.querySelectorAll('.node')].map(group => {
    const node = view.figure.nodes[group.dataset.node];
    return {...boxOf(group.firstElementChild), series: Number(group.dataset.series), node: group.dataset.node, lines: () => [
      view.nameLine(Number(group.dataset.series), node.title), {text: node.id}, ...(node.detail ? [{text: node.detail}] : []),
      ...(node.weight ? [['Share of the whole', numberText(node.weight * 100, 3) + '%']] : [])]};
  });
}

// Of the spans in view.
function spanMarks(view) {
  const figure = view.figure, unit = figure.x.unit, lane = Number(view.svg.dataset.lane), rows = view.svg.dataset.rows.trim().split(' ').map(Number);
  return figure.spans.filter(span => span[5] !== undefined && span[4] >= view.x.low && span[3] <= view.x.high).map(span => {
    const [track, name, group, begin, end, row] = span;
    const left = Math.max(view.x.from - 2, view.x.pixel(begin)), right = Math.max(left + 0.8, Math.min(view.x.to + 2, view.x.pixel(end)));
    const mark = {series: group, row: row, span: span, name: figure.names[name], x: (left + right) / 2, y: rows[row] - lane / 2,
      box: [left, rows[row] - lane / 2, right, rows[row] + lane / 2]};
    mark.lines = () => {
      const near = view.marks.filter(each => each.row === row && Math.abs(each.x - mark.x) < 1);
      if (near.length > 2) return [{text: near.length + ' spans', strong: true}, {text: figure.tracks[track]}, {text: 'Zoom in to see them one by one'}];
      return [view.nameLine(group, mark.name), {text: figure.tracks[track] + (figure.groups[group] ? ' · ' + figure.groups[group] : '')},
        ['Begins', quantityText(begin, unit)], ['Takes', quantityText(end - begin, unit)]];
    };
    return mark;
  });
}
