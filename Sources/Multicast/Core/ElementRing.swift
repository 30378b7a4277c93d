/// A ring buffer of elements, which grows by doubling.
///
/// ```
///           start         start + count
///             │               │
///   ┌───┬───┬───┬───┬───┬───┬───┬───┐
///   │   │   │ a │ b │ c │ d │   │   │   capacity: a power of two, or 0
///   └───┴───┴───┴───┴───┴───┴───┴───┘
/// ```
///
/// Invariants:
/// - The `count` slots from `start` on, counted modulo `capacity`, are initialized, and no other slots are.
/// - The ring moves elements out instead of destroying them, so that the caller can release them after it has unlocked
///   the channel. The exceptions are trivial elements, whose release does nothing, and `deinit`.
struct ElementRing<Element>: ~Copyable {
  private var slots: UnsafeMutablePointer<Element>
  private(set) var capacity = 0
  private var start = 0
  private(set) var count = 0

  private static var noSlots: UnsafeMutablePointer<Element> {
    UnsafeMutablePointer(bitPattern: MemoryLayout<Element>.alignment)!
  }

  /// Creates an empty ring without allocating memory.
  init() {
    slots = Self.noSlots
  }

  deinit {
    for offset in 0..<count { slot(offset).deinitialize(count: 1) }
    if capacity > 0 { slots.deallocate() }
  }

  /// Whether releasing an element does nothing, so that removed elements can be discarded in place.
  static var hasTrivialElements: Bool { _isPOD(Element.self) }

  /// Appends an element.
  ///
  /// - Complexity: O(1) amortized.
  @inline(__always)
  mutating func append(_ element: borrowing Element) where Element: Copyable {
    if count == capacity { resize(to: capacity == 0 ? 16 : capacity * 2) }
    slot(count).initialize(to: copy element)
    count += 1
  }

  /// Returns a copy of the element at an offset from the first one.
  @inline(__always)
  func element(at offset: Int) -> Element {
    slot(offset).pointee
  }

  /// Copies `count` elements, starting at an offset from the first one, into uninitialized memory.
  @inline(__always)
  func copy(from offset: Int, count: Int, to target: UnsafeMutablePointer<Element>) {
    let firstIndex = (start &+ offset) & (capacity &- 1)
    let untilWrap = min(count, capacity &- firstIndex)
    target.initialize(from: slots + firstIndex, count: untilWrap)
    if untilWrap < count { (target + untilWrap).initialize(from: slots, count: count &- untilWrap) }
  }

  /// Moves the first `movedCount` elements into uninitialized memory.
  @inline(__always)
  mutating func moveFirst(_ movedCount: Int, to target: UnsafeMutablePointer<Element>) {
    let untilWrap = min(movedCount, capacity &- start)
    target.moveInitialize(from: slots + start, count: untilWrap)
    if untilWrap < movedCount { (target + untilWrap).moveInitialize(from: slots, count: movedCount &- untilWrap) }
    start = (start &+ movedCount) & (capacity &- 1)
    count -= movedCount
  }

  /// Moves the first `removedCount` elements to `released`, or discards them if they are trivial.
  ///
  /// - Complexity: O(`removedCount`). O(1) if the elements are trivial, or if the ring has more than 64 elements and
  ///   all of them move to an empty `released`, which then takes over the ring's memory.
  @inline(__always)
  mutating func removeFirst(_ removedCount: Int, into released: inout ReleasedElements<Element>) {
    if !Self.hasTrivialElements {
      // Up to 64 elements are moved one by one, so that the ring keeps its memory for later ones.
      if removedCount > 64, removedCount == count, released.isEmpty { return removeAll(into: &released) }
      for offset in 0..<removedCount { released.append(movingFrom: slot(offset)) }
    }
    start = (start &+ removedCount) & (capacity &- 1)
    count -= removedCount
  }

  private mutating func removeAll(into released: inout ReleasedElements<Element>) {
    released.adopt(slots, capacity: capacity, start: start, count: count)
    slots = Self.noSlots
    (capacity, start, count) = (0, 0, 0)
  }

  /// Replaces the last element, which is moved to `released`.
  mutating func replaceLast(with element: Element, into released: inout ReleasedElements<Element>) {
    let lastSlot = slot(count - 1)
    released.append(movingFrom: lastSlot)
    lastSlot.initialize(to: element)
  }

  /// Reduces a capacity of more than 64 slots when at most an eighth of the slots is in use.
  @inline(__always)
  mutating func shrink() {
    guard capacity > 64, count <= capacity / 8 else { return }
    var newCapacity = 16
    while newCapacity < count * 2 { newCapacity *= 2 }
    resize(to: newCapacity)
  }

  @inline(__always)
  private func slot(_ offset: Int) -> UnsafeMutablePointer<Element> {
    slots + ((start &+ offset) & (capacity &- 1))
  }

  /// Moves the elements to a new block of the given capacity.
  private mutating func resize(to newCapacity: Int) {
    let block = UnsafeMutablePointer<Element>.allocate(capacity: newCapacity)
    let untilWrap = min(count, capacity &- start)
    block.moveInitialize(from: slots + start, count: untilWrap)
    if untilWrap < count { (block + untilWrap).moveInitialize(from: slots, count: count &- untilWrap) }
    if capacity > 0 { slots.deallocate() }
    slots = block
    capacity = newCapacity
    start = 0
  }
}

// Sendable, because the ring owns its elements, as an array does, and only code with exclusive access changes it.
extension ElementRing: @unchecked Sendable where Element: Sendable {}
