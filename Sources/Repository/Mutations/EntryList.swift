/// Elements in the order of their numbers, in chunks, so that a copy shares all but one of them with the original after
/// a change.
///
/// A snapshot is published after each change of a queue. Were the elements in one array, each publication would copy
/// them all, and n changes would cost n². Here a change copies one chunk and the list of chunks.
struct EntryList<Element: Sendable>: Sendable {
  private struct Slot: Sendable {
    let number: UInt64
    var element: Element
  }

  private static var chunkCapacity: Int { 64 }

  /// None of them is empty.
  ///
  /// Numbers rise from slot to slot and from chunk to chunk.
  private var chunks: [[Slot]] = []

  private(set) var count = 0

  /// All elements, in order.
  var elements: [Element] { chunks.flatMap { $0.map(\.element) } }

  /// The element with a number.
  ///
  /// Setting changes an element that is there, and nothing else.
  subscript(number: UInt64) -> Element? {
    get {
      find(number).map { chunks[$0.chunk][$0.slot].element }
    }
    set {
      guard let newValue, let place = find(number) else { return }
      chunks[place.chunk][place.slot].element = newValue
    }
  }

  /// Adds an element with a number that is not there yet.
  mutating func insert(_ element: Element, number: UInt64) {
    let slot = Slot(number: number, element: element)
    count += 1
    // Behind the last chunk whose first number is smaller; numbers rise, so nearly always behind everything.
    let chunk = firstIndex(chunks.count) { chunks[$0][0].number > number } - 1
    if chunk < 0 {
      chunks.insert([slot], at: 0)
    } else if chunk == chunks.count - 1, chunks[chunk].count >= Self.chunkCapacity,
      chunks[chunk][chunks[chunk].count - 1].number < number
    {
      chunks.append([slot])
    } else {
      let place = firstIndex(chunks[chunk].count) { chunks[chunk][$0].number > number }
      chunks[chunk].insert(slot, at: place)
      if chunks[chunk].count >= 2 * Self.chunkCapacity { split(chunk) }
    }
  }

  /// Takes an element away.
  @discardableResult
  mutating func remove(_ number: UInt64) -> Element? {
    guard let place = find(number) else { return nil }
    count -= 1
    let slot = chunks[place.chunk].remove(at: place.slot)
    if chunks[place.chunk].isEmpty { chunks.remove(at: place.chunk) }
    return slot.element
  }

  private mutating func split(_ chunk: Int) {
    let back = Array(chunks[chunk][Self.chunkCapacity...])
    chunks[chunk].removeLast(back.count)
    chunks.insert(back, at: chunk + 1)
  }

  private func find(_ number: UInt64) -> (chunk: Int, slot: Int)? {
    let chunk = firstIndex(chunks.count) { chunks[$0][0].number > number } - 1
    guard chunk >= 0 else { return nil }
    let slot = firstIndex(chunks[chunk].count) { chunks[chunk][$0].number >= number }
    guard slot < chunks[chunk].count, chunks[chunk][slot].number == number else { return nil }
    return (chunk, slot)
  }

  /// The first of `count` indices that is beyond something, by bisection; `count` when none is.
  private func firstIndex(_ count: Int, where isBeyond: (Int) -> Bool) -> Int {
    var lower = 0
    var upper = count
    while lower < upper {
      let middle = (lower + upper) / 2
      if isBeyond(middle) { upper = middle } else { lower = middle + 1 }
    }
    return lower
  }
}
