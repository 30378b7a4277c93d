/// The buffers of a channel's buffered subscribers, by their ids.
///
/// Each buffer is in memory of its own, and the list is one of plain addresses: a list whose type depends on the
/// element's, or an object for each buffer, looks up metadata and checks exclusivity at every access. That was a third
/// of what a bounded subscriber's element costs.
///
/// Invariant: an address in the list is that of an initialised `ElementRing<Element>`, which nothing else refers to.
struct CollectorBuffers<Element>: ~Copyable {
  private var addresses: ContiguousArray<UnsafeMutableRawPointer?> = []

  deinit {
    for address in addresses {
      guard let address else { continue }
      let buffer = address.assumingMemoryBound(to: ElementRing<Element>.self)
      buffer.deinitialize(count: 1)
      buffer.deallocate()
    }
  }

  /// Makes an empty buffer for a buffered subscriber, which must have none.
  mutating func add(_ id: Int) {
    while addresses.count <= id { addresses.append(nil) }
    let buffer = UnsafeMutablePointer<ElementRing<Element>>.allocate(capacity: 1)
    buffer.initialize(to: ElementRing())
    addresses[id] = UnsafeMutableRawPointer(buffer)
  }

  /// Whether a buffered subscriber has a buffer.
  func contains(_ id: Int) -> Bool {
    id < addresses.count && addresses[id] != nil
  }

  /// The buffer of a buffered subscriber, which must have one.
  ///
  /// To be used at once, by code with exclusive access to the channel.
  @inline(__always)
  func buffer(_ id: Int) -> UnsafeMutablePointer<ElementRing<Element>> {
    addresses[id]!.assumingMemoryBound(to: ElementRing<Element>.self)
  }

  /// Removes the buffer of a buffered subscriber, which must have one that is empty.
  mutating func remove(_ id: Int) {
    let buffer = buffer(id)
    addresses[id] = nil
    buffer.deinitialize(count: 1)
    buffer.deallocate()
  }
}

// The list owns its buffers, as an array does, and is changed only by code with exclusive access to it.
extension CollectorBuffers: @unchecked Sendable where Element: Sendable {}
