/// A division of the elements of a value into chunks, based on the chunks of an older version of the value.
///
/// Each chunk is stored separately, so a save writes only the chunks that have changed. Chunks at fixed offsets don't
/// work well, because one insertion at the front moves elements across every later border. Therefore a border stays
/// with the elements beside it: a chunk of the older version is kept if all of its elements are found as a run of the
/// new version, even at another position. The search is limited in distance and in comparisons, and a chunk that it
/// doesn't find counts as changed. Only the elements between the kept chunks are divided again.
///
/// Invariants:
/// - The chunks, joined, are the elements of the new version in order.
/// - The kept chunks are in ascending order, and none of them occurs twice.
/// - A new chunk has at least 1 and at most ``maximumCount`` elements.
/// - If the older version was divided by a plan, each chunk has at least ``minimumCount`` elements, unless it is the
///   only one. A value of `count` elements thus has at most `max(1, count / minimumCount)` chunks, regardless of the
///   edits that led to it.
struct ChunkPlan: Equatable {
  /// A chunk of the new version.
  enum Chunk: Equatable {
    /// The unchanged chunk of the older version at this index.
    case kept(Int)
    /// A new chunk of these elements of the new version.
    ///
    /// `basedOn` is the index of the chunk of the older version that probably has most of these elements. It is `nil`
    /// if no such chunk is known, and for each chunk of a long run that was divided.
    case new(Range<Int>, basedOn: Int? = nil)
  }

  /// The minimum size of a new chunk, unless it is the only one.
  ///
  /// A smaller new chunk is joined with the smaller of its neighbors.
  static let minimumCount = 32
  /// The approximate size of the chunks into which a long run of new elements is divided.
  static let targetCount = 64
  /// The maximum size of a new chunk; a larger one is split.
  ///
  /// This is twice the target, so that the halves of a split chunk can take many edits before the next split or join.
  static let maximumCount = 128

  /// The chunks of the new version, in order.
  let chunks: [Chunk]

  /// Plans the chunks of a new version.
  ///
  /// Changing, inserting or deleting one element replaces one chunk. If the new chunk would be too large, two chunks
  /// replace the old one. If it would be too small, it is joined with a neighbor.
  ///
  /// - Parameters:
  ///   - oldCounts: The number of elements of each chunk of the older version, in order; empty if nothing is stored.
  ///   - old: The elements of the older version, as many as the sum of `oldCounts`.
  ///   - new: The elements of the new version.
  ///   - type: The type of the value, whose `equalPrefixCount(of:and:)` compares the elements.
  /// - Complexity: O(*n*) for *n* elements in both versions together, with at most 4 *n* comparisons of elements. If
  ///   elements were only changed in place, and no two of the changed chunks are adjacent, one pass is enough.
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

  /// Joins each small new piece with its smaller neighbor, and each small kept piece with a new neighbor, if any.
  private static func joiningSmall(_ pieces: [ChunkPiece]) -> [ChunkPiece] {
    var joined: [ChunkPiece] = []
    var rest = pieces[...]
    while var piece = rest.popFirst() {
      while piece.elements.count < minimumCount {
        let neighbors = [joined.last, rest.first].compactMap { $0 }.filter { piece.isNew || $0.isNew }
        guard let partner = neighbors.min(by: { $0.elements.count < $1.elements.count }) else { break }
        if partner.elements.lowerBound < piece.elements.lowerBound { joined.removeLast() } else { rest.removeFirst() }
        piece = ChunkPiece(joining: piece, with: partner)
      }
      joined.append(piece)
    }
    return joined
  }

  /// Returns the chunks of a piece, which is divided into chunks of about the same size if it is new and too large.
  private static func chunks(of piece: ChunkPiece) -> [Chunk] {
    if let keptChunk = piece.keptChunk { return [.kept(keptChunk)] }
    let (start, count) = (piece.elements.lowerBound, piece.elements.count)
    if count <= maximumCount { return [.new(piece.elements, basedOn: piece.baseChunk)] }
    let chunkCount = (count + targetCount / 2) / targetCount
    return (0..<chunkCount).map { .new(start + count * $0 / chunkCount..<start + count * ($0 + 1) / chunkCount) }
  }
}

/// A run of elements of the new version: either those of a kept chunk, or new ones.
private struct ChunkPiece {
  let elements: Range<Int>
  /// The index of the kept chunk with these elements; `nil` for new elements.
  private(set) var keptChunk: Int?
  /// The index of the chunk of the older version that probably has most of these elements; `nil` if none is known.
  let baseChunk: Int?

  var isNew: Bool { keptChunk == nil }

  init(elements: Range<Int>, baseChunk: Int? = nil) {
    self.elements = elements
    self.baseChunk = baseChunk
  }

  init(elements: Range<Int>, keptChunk: Int) {
    self.elements = elements
    (self.keptChunk, baseChunk) = (keptChunk, keptChunk)
  }

  /// Joins two adjacent pieces, in either order, into one of new elements.
  init(joining first: ChunkPiece, with second: ChunkPiece) {
    elements =
      min(
        first.elements.lowerBound, second.elements.lowerBound)..<max(
        first.elements.upperBound, second.elements.upperBound)
    baseChunk = (first.elements.count > second.elements.count ? first : second).baseChunk
  }
}

/// Finds the chunks of an older version in the new version.
private struct ChunkAlignment<Value: PartitionedValue> {
  typealias Elements = UnsafeBufferPointer<Value.Element>

  /// The pieces of the new version that have been found so far, in order and without empty ones.
  private(set) var pieces: [ChunkPiece] = []
  private let old: Elements
  private let new: Elements
  /// The start of each chunk in `old`, followed by the end of the last one.
  private let starts: [Int]
  /// The number of elements that may still be compared; a chunk of more elements is regarded as changed.
  ///
  /// The first pass of ``alignAll()`` needs fewer comparisons than the limit and precedes any search, so it is never
  /// stopped.
  private var comparisonsLeft: Int
  /// A chunk is searched for up to this many elements before and after its expected position.
  private let searchDistance = 2 * ChunkPlan.maximumCount

  init(oldCounts: [Int], old: Elements, new: Elements) {
    starts = oldCounts.reduce(into: [0]) { $0.append($0.last! + $1) }
    precondition(starts.last == old.count, "The chunks have \(starts.last!) elements, and the value \(old.count).")
    (self.old, self.new) = (old, new)
    comparisonsLeft = 4 * (old.count + new.count)
  }

  /// Aligns all chunks.
  ///
  /// If the number of elements is the same, each chunk is first compared at its old position. If elements were only
  /// changed in place, this finds every unchanged chunk in one pass.
  mutating func alignAll() {
    let chunkCount = starts.count - 1
    let hasSameCount = old.count == new.count
    // These comparisons come before any search, because a search may use up all that are allowed.
    let unchanged = hasSameCount ? (0..<chunkCount).filter { matches($0, at: starts[$0], in: new.indices) } : []
    var (chunks, region) = (0..<chunkCount, new.indices)
    for chunk in unchanged {
      align(chunks.lowerBound..<chunk, with: region.lowerBound..<starts[chunk])
      keep(chunk, at: starts[chunk], &chunks, &region)
    }
    align(chunks, with: region)
  }

  /// Aligns a range of chunks with a region of the new version, first from the end of both, then from the start.
  private mutating func align(_ chunks: Range<Int>, with region: Range<Int>) {
    // These lengths are equal only if both versions have the same number of elements, because otherwise this method is
    // called only once, with all chunks and the whole new version. The first pass has then already compared the chunk
    // at this position, without a match.
    if chunks.count == 1, length(chunks) == region.count { return replace(chunks, by: region) }
    var (chunks, region) = (chunks, region)
    var keptAtEnd: [ChunkPiece] = []
    while let chunk = chunks.last, matches(chunk, at: region.upperBound - length(chunk..<chunk + 1), in: region) {
      let position = region.upperBound - length(chunk..<chunk + 1)
      keptAtEnd.append(ChunkPiece(elements: position..<region.upperBound, keptChunk: chunk))
      chunks.removeLast()
      region = region.lowerBound..<position
    }
    for chunk in chunks {
      guard let position = position(of: chunk, among: chunks, in: region) else { continue }
      replace(chunks.lowerBound..<chunk, by: region.lowerBound..<position)
      keep(chunk, at: position, &chunks, &region)
    }
    replace(chunks, by: region)
    pieces += keptAtEnd.reversed()
  }

  /// Returns the position of a chunk in the region, or `nil` if it isn't found.
  ///
  /// `chunks` and `region` are the parts of the two versions that aren't aligned yet. If the elements before the chunk
  /// were only changed in place, its distance from the start is the same in both. If those after it were only changed
  /// in place, its distance from the end is the same in both.
  private mutating func position(of chunk: Int, among chunks: Range<Int>, in region: Range<Int>) -> Int? {
    let fromStart = region.lowerBound + length(chunks.lowerBound..<chunk)
    let fromEnd = region.upperBound - length(chunk..<chunks.upperBound)
    for position in [fromStart, fromEnd] where matches(chunk, at: position, in: region) { return position }
    // If the next chunk is at its expected position, this one was changed in place, so a search would not find it.
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

  /// Adds a kept chunk, and reduces `chunks` and `region` to the parts after it.
  private mutating func keep(_ chunk: Int, at position: Int, _ chunks: inout Range<Int>, _ region: inout Range<Int>) {
    let end = position + length(chunk..<chunk + 1)
    pieces.append(ChunkPiece(elements: position..<end, keptChunk: chunk))
    chunks = chunk + 1..<chunks.upperBound
    region = end..<region.upperBound
  }

  /// Adds the elements of a region as new pieces.
  ///
  /// If `chunks` have the same number of elements in total, the pieces have the borders of these chunks. Otherwise the
  /// whole region is one piece.
  private mutating func replace(_ chunks: Range<Int>, by region: Range<Int>) {
    if length(chunks) == region.count {
      let shift = region.lowerBound - starts[chunks.lowerBound]
      for chunk in chunks where length(chunk..<chunk + 1) > 0 {
        pieces.append(ChunkPiece(elements: starts[chunk] + shift..<starts[chunk + 1] + shift, baseChunk: chunk))
      }
    } else if !region.isEmpty {
      pieces.append(ChunkPiece(elements: region, baseChunk: chunks.count == 1 ? chunks.lowerBound : nil))
    }
  }

  /// Returns whether a region of the new version has the elements of a chunk at a position.
  ///
  /// The result is `false` for an empty chunk, and if too few comparisons are left.
  private mutating func matches(_ chunk: Int, at position: Int, in region: Range<Int>) -> Bool {
    let (start, count) = (starts[chunk], length(chunk..<chunk + 1))
    guard count > 0, count <= comparisonsLeft else { return false }
    guard position >= region.lowerBound, position + count <= region.upperBound else { return false }
    let equalCount = Value.equalPrefixCount(
      of: old.extracting(start..<start + count).span, and: new.extracting(position..<position + count).span)
    comparisonsLeft -= min(equalCount + 1, count)
    return equalCount == count
  }

  /// Returns the total number of elements of a range of chunks.
  private func length(_ chunks: Range<Int>) -> Int {
    starts[chunks.upperBound] - starts[chunks.lowerBound]
  }
}
