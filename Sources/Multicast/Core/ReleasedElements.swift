/// Elements that are no longer needed, which are moved out under a lock and released after it is unlocked.
///
/// The type stores only an address and integers, and doesn't release its elements by itself. The code that creates a
/// value must therefore call ``release()`` exactly once, preferably in a `defer`. An empty value allocates nothing.
///
/// An array of elements, or a type that releases its elements, would be slower: code that is generic over `Element` has
/// to look up metadata to create or destroy such a value. The lookup takes longer than the rest of a send.
///
/// Invariants:
/// - The `count` slots from `start` on, counted modulo `capacity`, are initialized, and no other slots are.
/// - `capacity` is a power of two, or 0 if no memory is allocated.
struct ReleasedElements<Element> {
  private var slots: UnsafeMutablePointer<Element>?
  private var capacity = 0
  private var start = 0
  private(set) var count = 0

  /// Moves an element from its place to the end of this list.
  @inline(__always)
  mutating func append(movingFrom source: UnsafeMutablePointer<Element>) {
    if count == capacity { self = grown() }
    (slots! + ((start &+ count) & (capacity &- 1))).moveInitialize(from: source, count: 1)
    count += 1
  }

  /// Takes ownership of a block of memory and the elements in it.
  ///
  /// - Precondition: This value is empty.
  mutating func adopt(_ slots: UnsafeMutablePointer<Element>, capacity: Int, start: Int, count: Int) {
    assert(self.capacity == 0, "The present block would leak.")
    self.slots = slots
    self.capacity = capacity
    self.start = start
    self.count = count
  }

  /// Whether no memory is allocated, so that a block can be adopted.
  var isEmpty: Bool { capacity == 0 }

  /// Releases the elements, oldest first.
  ///
  /// Must not be called under a lock, because an element's `deinit` may run user code.
  @inline(__always)
  func release() {
    if capacity > 0 { releaseAll() }
  }

  @inline(never)
  private func releaseAll() {
    let untilWrap = min(count, capacity - start)
    (slots! + start).deinitialize(count: untilWrap)
    if untilWrap < count { slots!.deinitialize(count: count - untilWrap) }
    slots!.deallocate()
  }

  /// Moves the elements to a new value with at least twice the capacity, and returns it.
  ///
  /// The caller must replace this value with the new one, because this value's memory is freed. If this method, which
  /// isn't inlined, changed the value in place instead, it would need the metadata of the value's type.
  @inline(never)
  private func grown() -> ReleasedElements {
    var larger = ReleasedElements()
    larger.capacity = max(capacity * 2, 1)
    larger.count = count
    let block = UnsafeMutablePointer<Element>.allocate(capacity: larger.capacity)
    larger.slots = block
    guard let slots else { return larger }
    let untilWrap = min(count, capacity - start)
    block.moveInitialize(from: slots + start, count: untilWrap)
    if untilWrap < count { (block + untilWrap).moveInitialize(from: slots, count: count - untilWrap) }
    slots.deallocate()
    return larger
  }
}
