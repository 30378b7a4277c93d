/// How the elements of a value are divided into chunks, given how an older version of it was divided.
///
/// Each chunk is stored by itself, so a save writes only the chunks that changed. Chunks at fixed offsets would not do,
/// because one insertion at the front moves every later element into another chunk. A border therefore belongs to the
/// elements beside it: a chunk of the older version is kept wherever the new version has all of its elements in a row.
/// Only what lies between the kept chunks is divided anew.
///
/// Invariants:
/// - The chunks, joined, are the elements of the new version in order.
/// - The kept chunks are in ascending order, and none occurs twice.
/// - A new chunk has at least 1 and at most ``maximumCount`` elements.
/// - If the older version was divided by a plan, each chunk has at least ``minimumCount`` elements, unless it is the
///   only one. A value of `count` elements thus has at most `max(1, count / minimumCount)` chunks, whatever the edits
///   that led to it.
struct ChunkPlan: Equatable {
  /// A chunk of the new version.
  enum Chunk: Equatable {
    /// The chunk of the older version at this index, unchanged.
    case kept(Int)
    /// A new chunk of these elements of the new version, and the index of the chunk of the older version that most of
    /// them are likely to be in, if there is one.
    case new(Range<Int>, basedOn: Int? = nil)
  }

  /// The least size of a chunk of several; a smaller new one is joined with the smaller of its neighbours.
  static let minimumCount = 32
  /// The size of the chunks that a long run of new elements is divided into.
  static let targetCount = 64
  /// The greatest size of a new chunk; a larger one is split.
  ///
  /// This is twice the target, so that the halves of a split chunk can grow and shrink for long before the next split.
  static let maximumCount = 128

  /// The chunks of the new version, in order.
  let chunks: [Chunk]

  /// Plans the chunks of a new version.
  ///
  /// A change in place replaces the chunk that it is in. An insertion or deletion of an element replaces one chunk, or
  /// two if the result is too large or too small for one.
  ///
  /// - Parameters:
  ///   - oldCounts: The number of elements of each chunk of the older version, in order; empty if nothing is stored.
  ///   - old: The elements of the older version, as many as the sum of `oldCounts`.
  ///   - new: The elements of the new version.
  /// - Complexity: O(*n*) for *n* elements in both versions together, with at most 4 *n* comparisons of elements. One
  ///   pass over the versions is enough if elements were changed in place and no two of the changed chunks are adjacent.
  ///   - type: The type of the value, which compares its elements.
  init<Value: PartitionedValue>(
    oldCounts: [Int], old: [Value.Element], new: [Value.Element], of type: Value.Type
  ) {
    let pieces = old.withUnsafeBufferPointer { old in
      new.withUnsafeBufferPointer { new in
        var alignment = ChunkAlignment<Value>(oldCounts: oldCounts, old: old, new: new)
        alignment.alignAll()
        return alignment.pieces
      }
    }
    chunks = Self.joiningSmall(pieces).flatMap(Self.chunks(of:))
  }

  /// Joins each small new piece with its smaller neighbour, and each small kept one with a new neighbour.
  private static func joiningSmall(_ pieces: [ChunkPiece]) -> [ChunkPiece] {
    var joined: [ChunkPiece] = []
    var rest = pieces[...]
    while var piece = rest.popFirst() {
      while piece.elements.count < minimumCount {
        let neighbours = [joined.last, rest.first].compactMap { $0 }.filter { piece.isNew || $0.isNew }
        guard let partner = neighbours.min(by: { $0.elements.count < $1.elements.count }) else { break }
        if partner.elements.lowerBound < piece.elements.lowerBound { joined.removeLast() } else { rest.removeFirst() }
        piece = ChunkPiece(joining: piece, with: partner)
      }
      joined.append(piece)
    }
    return joined
  }

  /// Divides a new piece that is too large into chunks of about the same size.
  private static func chunks(of piece: ChunkPiece) -> [Chunk] {
    if let oldChunk = piece.oldChunk { return [.kept(oldChunk)] }
    let (start, count) = (piece.elements.lowerBound, piece.elements.count)
    if count <= maximumCount { return [.new(piece.elements, basedOn: piece.likelyChunk)] }
    let parts = (count + targetCount / 2) / targetCount
    return (0..<parts).map { .new(start + count * $0 / parts..<start + count * ($0 + 1) / parts) }
  }
}

/// A run of elements of the new version: those of one chunk of the older version, or new ones.
private struct ChunkPiece {
  let elements: Range<Int>
  /// The chunk of the older version with these elements.
  private(set) var oldChunk: Int?
  /// The chunk of the older version that most of the elements are likely to be in, if it is known.
  let likelyChunk: Int?

  var isNew: Bool { oldChunk == nil }

  init(elements: Range<Int>, likelyChunk: Int? = nil) {
    self.elements = elements
    self.likelyChunk = likelyChunk
  }

  init(elements: Range<Int>, oldChunk: Int) {
    self.elements = elements
    (self.oldChunk, likelyChunk) = (oldChunk, oldChunk)
  }

  /// Joins two pieces that are side by side.
  init(joining first: ChunkPiece, with second: ChunkPiece) {
    elements =
      min(
        first.elements.lowerBound, second.elements.lowerBound)..<max(
        first.elements.upperBound, second.elements.upperBound)
    likelyChunk = (first.elements.count > second.elements.count ? first : second).likelyChunk
  }
}

/// Finds the chunks of an older version in the new one.
private struct ChunkAlignment<Value: PartitionedValue> {
  typealias Elements = UnsafeBufferPointer<Value.Element>

  /// What was found, in order, without empty pieces.
  private(set) var pieces: [ChunkPiece] = []
  private let old: Elements
  private let new: Elements
  /// Where the chunks start in `old`, and last where the last one ends.
  private let starts: [Int]
  /// How many more elements may be compared; a chunk that has more is regarded as changed.
  ///
  /// What needs no search compares less than this and comes first, so only a search is ever given up.
  private var comparisonsLeft: Int
  /// How far from its expected position a chunk is searched for, in elements.
  private let searchDistance = 2 * ChunkPlan.maximumCount

  init(oldCounts: [Int], old: Elements, new: Elements) {
    starts = oldCounts.reduce(into: [0]) { $0.append($0.last! + $1) }
    precondition(starts.last == old.count, "The chunks have \(starts.last!) elements, and the value \(old.count).")
    (self.old, self.new) = (old, new)
    comparisonsLeft = 4 * (old.count + new.count)
  }

  /// Aligns all chunks.
  ///
  /// If the number of elements is the same, each chunk is first compared where it was. If elements were changed in
  /// place, that finds every unchanged chunk in one pass.
  mutating func alignAll() {
    let count = starts.count - 1
    let isSameCount = old.count == new.count
    // All of them before any search, because a search may use up the comparisons.
    let unchanged = isSameCount ? (0..<count).filter { matches($0, at: starts[$0], in: new.indices) } : []
    var (chunks, region) = (0..<count, new.indices)
    for chunk in unchanged {
      align(chunks.lowerBound..<chunk, with: region.lowerBound..<starts[chunk])
      keep(chunk, at: starts[chunk], &chunks, &region)
    }
    align(chunks, with: region)
  }

  /// Aligns some chunks with a region of the new version: first from its end, then from its start.
  private mutating func align(_ chunks: Range<Int>, with region: Range<Int>) {
    if chunks.count == 1, length(chunks) == region.count { return replace(chunks, by: region) }
    var (chunks, region) = (chunks, region)
    var kept: [ChunkPiece] = []
    while let chunk = chunks.last, matches(chunk, at: region.upperBound - length(chunk..<chunk + 1), in: region) {
      let position = region.upperBound - length(chunk..<chunk + 1)
      kept.append(ChunkPiece(elements: position..<region.upperBound, oldChunk: chunk))
      chunks.removeLast()
      region = region.lowerBound..<position
    }
    for chunk in chunks {
      guard let position = position(of: chunk, after: chunks, in: region) else { continue }
      replace(chunks.lowerBound..<chunk, by: region.lowerBound..<position)
      keep(chunk, at: position, &chunks, &region)
    }
    replace(chunks, by: region)
    pieces += kept.reversed()
  }

  /// Returns where in the region a chunk is, or `nil` if it isn't found.
  ///
  /// `chunks` and `region` are what isn't aligned so far. If their elements before the chunk were changed in place, the
  /// chunk is as far from the start of both; if those after it were, it is as far from the end of both.
  private mutating func position(of chunk: Int, after chunks: Range<Int>, in region: Range<Int>) -> Int? {
    let fromStart = region.lowerBound + length(chunks.lowerBound..<chunk)
    let fromEnd = region.upperBound - length(chunk..<chunks.upperBound)
    for position in [fromStart, fromEnd] where matches(chunk, at: position, in: region) { return position }
    // The chunk itself was changed in place if the next one is where it is expected.
    if chunk + 1 < chunks.upperBound, matches(chunk + 1, at: fromStart + length(chunk..<chunk + 1), in: region) {
      return nil
    }
    for distance in 1...searchDistance {
      for position in [fromStart + distance, fromStart - distance] where matches(chunk, at: position, in: region) {
        return position
      }
    }
    return nil
  }

  /// Adds a chunk as kept, and leaves what comes after it.
  private mutating func keep(_ chunk: Int, at position: Int, _ chunks: inout Range<Int>, _ region: inout Range<Int>) {
    let end = position + length(chunk..<chunk + 1)
    pieces.append(ChunkPiece(elements: position..<end, oldChunk: chunk))
    chunks = chunk + 1..<chunks.upperBound
    region = end..<region.upperBound
  }

  /// Adds the elements of a region as new ones, in the old borders if there are as many as before.
  private mutating func replace(_ chunks: Range<Int>, by region: Range<Int>) {
    if length(chunks) == region.count {
      let shift = region.lowerBound - starts[chunks.lowerBound]
      for chunk in chunks where length(chunk..<chunk + 1) > 0 {
        pieces.append(ChunkPiece(elements: starts[chunk] + shift..<starts[chunk + 1] + shift, likelyChunk: chunk))
      }
    } else if !region.isEmpty {
      pieces.append(ChunkPiece(elements: region, likelyChunk: chunks.count == 1 ? chunks.lowerBound : nil))
    }
  }

  /// Whether a chunk's elements are those of the new version from a position on.
  private mutating func matches(_ chunk: Int, at position: Int, in region: Range<Int>) -> Bool {
    let (start, count) = (starts[chunk], length(chunk..<chunk + 1))
    guard count > 0, count <= comparisonsLeft else { return false }
    guard position >= region.lowerBound, position + count <= region.upperBound else { return false }
    let equalCount = Value.equalPrefixCount(
      of: old.extracting(start..<start + count).span, and: new.extracting(position..<position + count).span)
    comparisonsLeft -= min(equalCount + 1, count)
    return equalCount == count
  }

  /// The number of elements of some chunks together.
  private func length(_ chunks: Range<Int>) -> Int {
    starts[chunks.upperBound] - starts[chunks.lowerBound]
  }
}
