// Texts beside what they name, where there is room: those that would cover another are left out.

class Room {
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.boxes = [];
  }
  // Boxes are [x0, y0, x1, y1].
  free(box) {
    return box[0] >= 0 && box[1] >= 0 && box[2] <= this.width && box[3] <= this.height &&
      this.boxes.every(other => box[2] <= other[0] || other[2] <= box[0] || box[3] <= other[1] || other[3] <= box[1]);
  }
  take(box) {
    this.boxes.push(box);
  }
}

// Beside its point, without its last parts ("resnet18, batch 64, 3x64x64") where all of it finds no room.
function labelPoint(room, x, y, text) {
  const parts = text.split(', ');
  for (let count = parts.length; count > 0; --count) {
    const label = parts.slice(0, count).join(', ');
    const drawn = label.length <= 32 ? labelWhole(room, x, y, label) : null;
    if (drawn) return drawn;
  }
  return null;
}

// To the right, above, below, to the left.
function labelWhole(room, x, y, text) {
  const width = textWidth(text, 11) + 2;
  const places = [
    {x: x + 8, y: y + 4, anchor: 'start', box: [x + 7, y - 6, x + 9 + width, y + 7]},
    {x: x, y: y - 8, anchor: 'middle', box: [x - width / 2, y - 19, x + width / 2, y - 6]},
    {x: x, y: y + 17, anchor: 'middle', box: [x - width / 2, y + 7, x + width / 2, y + 20]},
    {x: x - 8, y: y + 4, anchor: 'end', box: [x - 9 - width, y - 6, x - 7, y + 7]}
  ];
  const place = places.find(each => room.free(each.box));
  if (!place) return null;
  room.take(place.box);
  return makeSvg('text', {class: 'point-label', x: place.x, y: place.y, 'text-anchor': place.anchor}, text);
}

// Along a line, given as points on the screen: on one of its pieces, above or below it. The text's own boxes are
// small squares along it, for it may lie at any angle.
function labelLine(room, points, text) {
  const need = textWidth(text, 11) + 16;
  const pieces = points.slice(1).map((end, index) => ({from: points[index], to: end}))
    .map(piece => ({...piece, length: Math.hypot(piece.to[0] - piece.from[0], piece.to[1] - piece.from[1])}))
    .map(piece => ({...piece, flat: Math.abs(piece.to[1] - piece.from[1]) < 0.1 * piece.length}))
    // Flat pieces that the text fits are the easiest to read.
    .sort((a, b) => (b.flat && b.length > need) - (a.flat && a.length > need) || b.length - a.length);
  for (const piece of pieces) {
    const words = fitted(text, piece.length - 16, 11);
    if (words.length < Math.min(text.length, 6)) continue;
    const width = textWidth(words, 11), dx = (piece.to[0] - piece.from[0]) / piece.length, dy = (piece.to[1] - piece.from[1]) / piece.length;
    const spare = piece.length - width - 12;
    // Flat roofs are named at their right end, slanted ones at their left.
    for (const share of piece.flat ? [1, 0.75, 0.5, 0.25, 0] : [0.12, 0.3, 0.5, 0.7, 0.9]) {
      for (const side of [-1, 1]) {
        const start = 6 + spare * share, off = side < 0 ? -5 : 13;
        const at = along => [piece.from[0] + dx * along - dy * off, piece.from[1] + dy * along + dx * off];
        const boxes = d3.range(0, width + 5, 9).map(along => {
          const [x, y] = at(start + Math.min(along, width));
          const [cx, cy] = [x + dy * 4, y - dx * 4];
          return [cx - 5, cy - 5, cx + 5, cy + 5];
        });
        if (!boxes.every(box => room.free(box))) continue;
        boxes.forEach(box => room.take(box));
        const [x, y] = at(start);
        const angle = Math.atan2(dy, dx) * 180 / Math.PI;
        return makeSvg('text', {class: 'roof-label', transform: 'translate(' + x + ',' + y + ') rotate(' + angle + ')'}, words);
      }
    }
  }
  return null;
}
