/// Elements that are no longer needed: moved out under a lock, to be released after it.
///
/// Plain words, not an array and not an owner: code that is generic over `Element` looks up the type's metadata to make
/// an array of it, or to drop an owner, which takes longer than everything else that a send does. The code that makes
/// one must call ``release()`` once, which `defer` does best. Empty costs nothing.
///
/// Invariant: the `count` slots from `start` on, counted modulo `capacity`, are initialised, and no other slots;
/// `capacity` is a power of two, or 0 without any memory.
struct ReleasedElements<Element> {
  private var slots: UnsafeMutablePointer<Element>?
  private var capacity = 0
  private var start = 0
  private(set) var count = 0

  /// Adds an element that is moved out of its place.
  @inline(__always)
  mutating func append(movingFrom source: UnsafeMutablePointer<Element>) {
    if count == capacity { self = grown() }
    (slots! + ((start &+ count) & (capacity &- 1))).moveInitialize(from: source, count: 1)
    count += 1
  }

  /// Takes a block of memory over, with the elements in it.
  ///
  /// There must be none yet.
  mutating func adopt(_ slots: UnsafeMutablePointer<Element>, capacity: Int, start: Int, count: Int) {
    assert(self.capacity == 0, "What is there would be lost.")
    self.slots = slots
    self.capacity = capacity
    self.start = start
    self.count = count
  }

  /// Whether nothing was added, so that a block can be adopted.
  var isEmpty: Bool { capacity == 0 }

  /// Releases the elements, oldest first, which may run foreign code: call it outside every lock.
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

  /// The same with more room.
  ///
  /// Makes a new value, as what changes the old one in place has to know its type's metadata.
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
