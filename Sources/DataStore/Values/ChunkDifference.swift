/// The difference between a new chunk and the stored one that it replaces.
///
/// A store encodes only the new elements and copies the bytes of the others from the stored chunk, because encoding a
/// whole chunk would take longer than all other steps of a save.
///
/// **Invariant**: The runs, joined, are the elements of the new chunk in order. No run is empty.
struct ChunkDifference: Equatable {
  /// A run of consecutive elements.
  enum Run: Equatable {
    /// Elements of the stored chunk, which the new one has too.
    case stored(Range<Int>)
    /// Elements of the new chunk that must be encoded.
    case new(Range<Int>)
  }

  /// The elements of the new chunk, in order.
  let runs: [Run]

  /// Whether any element of the stored chunk is recognized in the new one.
  var usesStored: Bool {
    runs.contains { if case .stored = $0 { true } else { false } }
  }

  /// Compares two chunks.
  ///
  /// If the chunks have the same number of elements, the comparison recognizes each element that has kept its position.
  /// If one run of elements was inserted or deleted, it recognizes all elements before and after the run. After any
  /// other change of the number of elements, it recognizes only those before the first difference.
  ///
  /// - Complexity: O(*n*) for *n* elements in both chunks together.
  init<Value: PartitionedValue>(
    from old: Span<Value.Element>, to new: Span<Value.Element>, of type: Value.Type
  ) {
    var runs: [Run] = []
    func add(stored range: Range<Int>) { if !range.isEmpty { runs.append(.stored(range)) } }
    func add(new range: Range<Int>) { if !range.isEmpty { runs.append(.new(range)) } }

    let prefixCount = Value.equalPrefixCount(of: old, and: new)
    add(stored: 0..<prefixCount)
    if old.count == new.count {
      var index = prefixCount
      while index < new.count {
        let start = index
        var equalCount = 0
        while index < new.count, equalCount == 0 {
          equalCount = Value.equalPrefixCount(of: old.extracting(index...), and: new.extracting(index...))
          if equalCount == 0 { index += 1 }
        }
        add(new: start..<index)
        add(stored: index..<index + equalCount)
        index += equalCount
      }
    } else {
      let insertedCount = max(0, new.count - old.count)
      let deletedCount = max(0, old.count - new.count)
      let (oldStart, newStart) = (prefixCount + deletedCount, prefixCount + insertedCount)
      let equalCount = Value.equalPrefixCount(of: old.extracting(oldStart...), and: new.extracting(newStart...))
      if equalCount == new.count - newStart {
        add(new: prefixCount..<newStart)
        add(stored: oldStart..<old.count)
      } else {
        add(new: prefixCount..<new.count)
      }
    }
    self.runs = runs
  }
}
