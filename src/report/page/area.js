// Areas on top of each other over x.

// The series' values at all xs: between its points on straight lines (or steps), nothing outside them.
function valuesAt(series, xs) {
  const points = series.points.slice().sort((a, b) => a[0] - b[0]);
  let place = 0;
  return xs.map(x => {
    while (place + 1 < points.length && points[place + 1][0] <= x) ++place;
    const a = points[place], b = points[place + 1];
    if (!a || x < a[0]) return 0;
    if (x === a[0] || !b) return x === a[0] || series.style === 'step' ? a[1] : 0;
    return series.style === 'step' ? a[1] : a[1] + (b[1] - a[1]) * (x - a[0]) / (b[0] - a[0]);
  });
}

function drawArea(figure, box, state) {
  const shown = figure.series.map((series, index) => ({...series, look: {...state.looks[index], style: 'box'}, index: index,
    points: series.points.filter(point => point[0] !== null && point[1] !== null && (!figure.x.log || point[0] > 0))}))
    .filter(series => state.visible(series.index));
  const xs = [...new Set(shown.flatMap(series => series.points.map(point => point[0])))].sort((a, b) => a - b);
  // One step makes all of them steps: areas that meet must bend alike.
  const steps = shown.some(series => series.style === 'step');
  const columns = shown.map(series => valuesAt(series, xs));
  const base = xs.map(() => 0), layers = [];
  shown.forEach((series, index) => {
    const from = base.slice();
    columns[index].forEach((value, place) => { base[place] += value; });
    layers.push({series: series, from: from, to: base.slice()});
  });
  const x = makeAxis(figure.x, xs, {tight: true, tickSpace: 64, whole: true});
  const y = makeAxis({...figure.y, log: false}, base.concat(0), {zero: true, tickSpace: 42});
  const frame = makeFrame(box, figure, {x: x, y: y, height: box.clientWidth < 560 ? 300 : 360});
  const area = makeSvg('g', {'clip-path': frame.clip}), hits = [];
  for (const layer of layers) {
    const shape = d3.area().x((_, i) => x.scale(xs[i])).y0((_, i) => y.scale(layer.from[i])).y1((_, i) => y.scale(layer.to[i]));
    if (steps) shape.curve(d3.curveStepAfter);
    const group = makeSvg('g', {class: 'series', 'data-series': layer.series.index, 'data-points': layer.series.points.length},
      makeSvg('path', {class: 'layer', d: shape(xs), 'fill-opacity': layer.series.look.shade * 0.8}));
    group.style.setProperty('--c', layer.series.look.color);
    append(area, [group]);
  }
  frame.plot.insertBefore(area, frame.plot.children[1]);
  // Pointing at an x tells the whole stack there.
  xs.forEach((at, i) => hits.push({x: x.scale(at), y: y.scale(base[i]), column: true, lines: () => [
    {text: (figure.x.title || 'x') + ' ' + quantityText(at, figure.x.unit), strong: true},
    ...layers.slice().reverse().filter((_, k, all) => all.length <= 14 || all[k].to[i] > all[k].from[i]).slice(0, 14)
      .map(layer => [layer.series.name, quantityText(layer.to[i] - layer.from[i], figure.y.unit)]),
    ['Total', quantityText(base[i], figure.y.unit)]]}));
  return {svg: frame.svg, plot: frame.plot, hits: hits, left: frame.left, top: frame.top, columnHeight: frame.height};
}
