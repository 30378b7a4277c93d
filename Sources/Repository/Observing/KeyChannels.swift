internal import Multicast

/// The channels of a repository's observers, by key.
///
/// A channel lives as long as its streams, subscriptions and iterators do. Observers subscribe on any thread and get
/// their channel at once, with the current element if it is known. The repository is notified of a new channel, and
/// soon sends the first element if none was known.
final class KeyChannels<Key: Hashable & Sendable, Element: Sendable>: Sendable {
  /// A channel, and the number that identifies it.
  private struct Entry {
    let number: UInt64
    let channel: UnownedChannel<Element>
    var hasReplay = false
  }

  private struct State {
    var entries: [Key: Entry] = [:]
    /// The element with which a new channel of each key begins, as far as it is known.
    var current: [Key: Element] = [:]
    var lastNumber: UInt64 = 0
    var isFinished = false

    /// Returns the channel of a key with its stream, and records that it replays an element; `nil` if the key isn't
    /// observed.
    mutating func beginSending(to key: Key) -> (entry: Entry, stream: MulticastStream<Element, Never>)? {
      guard let entry = entries[key], let stream = entry.channel.stream else { return nil }
      entries[key]?.hasReplay = true
      return (entry, stream)
    }
  }

  private let state = Lock(State())

  /// Returns the stream of a key.
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - onOpen: Called if the channel is new, before this function returns.
  ///   - onClose: Called on any thread when the last observer of the channel is gone. It should only start a task that
  ///     calls ``forgetReleased(_:)``.
  func stream(
    of key: Key, onOpen: () -> Void, onClose: @escaping @Sendable () -> Void
  ) -> MulticastStream<Element, Never> {
    let (stream, isNew) = state.withLock { state -> (MulticastStream<Element, Never>, Bool) in
      if let stream = state.entries[key]?.channel.stream { return (stream, false) }
      let (channel, stream) = UnownedChannel<Element>.makeStream(replay: 1, onRelease: onClose)
      state.lastNumber += 1
      let current = state.current[key]
      if let current { channel.send(current) }
      if state.isFinished {
        channel.finish()
      } else {
        state.entries[key] = Entry(number: state.lastNumber, channel: channel, hasReplay: current != nil)
      }
      return (stream, true)
    }
    if isNew { onOpen() }
    return stream
  }

  /// The keys that have a channel, in the order in which the channels were opened.
  ///
  /// - Complexity: O(*n* log *n*), where *n* is the number of channels.
  var keys: [Key] { state.withLock { $0.entries.sorted { $0.value.number < $1.value.number }.map(\.key) } }

  /// Returns whether a key is observed.
  func isObserved(_ key: Key) -> Bool {
    existingStream(of: key) != nil
  }

  /// Returns the number of iterators and subscriptions of a key.
  func observerCount(of key: Key) -> Int {
    // Counted outside the lock, because the count may release the last reference to the channel.
    state.withLock { $0.entries[key]?.channel }?.subscriberCount ?? 0
  }

  /// Returns whether the channel of a key replays an element; `false` if there is no channel.
  func hasReplay(of key: Key) -> Bool {
    state.withLock { $0.entries[key]?.hasReplay ?? false }
  }

  /// Sends an element to the observers of a key.
  ///
  /// - Returns: The number that identifies their channel; `nil` if the key isn't observed.
  @discardableResult
  func send(_ element: Element, to key: Key) -> UInt64? {
    // The stream is kept until the lock is free, because it may be the last reference to the channel.
    let observed = state.withLock { $0.beginSending(to: key) }
    observed?.entry.channel.send(element)
    return observed?.entry.number
  }

  /// Returns the number that identifies the channel of a key; `nil` if the key isn't observed.
  func number(of key: Key) -> UInt64? {
    let found = state.withLock { state in state.entries[key].map { (number: $0.number, stream: $0.channel.stream) } }
    return found?.stream == nil ? nil : found?.number
  }

  /// Sends an element to the observers of a key, and makes it the first element for later observers.
  @discardableResult
  func setCurrent(_ element: Element, of key: Key) -> UInt64? {
    // In one step, because a channel that is opened after it begins with the element, and must not receive it again.
    let (old, observed) = state.withLock { state in
      (state.current.updateValue(element, forKey: key), state.beginSending(to: key))
    }
    // Released here, outside the lock, because releasing an element may run arbitrary code.
    _ = consume old
    observed?.entry.channel.send(element)
    return observed?.entry.number
  }

  /// Discards the element with which a new channel of a key begins.
  ///
  /// An existing channel keeps its replay.
  func forgetCurrent(of key: Key) {
    let element = state.withLock { $0.current.removeValue(forKey: key) }
    // Released here, outside the lock, because releasing an element may run arbitrary code.
    _ = consume element
  }

  /// Sends an element to the observers of a key, unless their channel replays one already.
  func sendFirst(_ element: @autoclosure () -> Element, to key: Key) {
    // Without a channel, there is no observer to send to.
    let hasReplay = state.withLock { $0.entries[key]?.hasReplay ?? true }
    if !hasReplay { send(element(), to: key) }
  }

  /// Discards the newest element of a key, so that new observers wait for the next one.
  func resetReplay(of key: Key) {
    forgetCurrent(of: key)
    // The stream is kept until the lock is free, because it may be the last reference to the channel.
    let observed = state.withLock { state -> (entry: Entry, stream: MulticastStream<Element, Never>)? in
      guard let entry = state.entries[key], let stream = entry.channel.stream else { return nil }
      state.entries[key]?.hasReplay = false
      return (entry, stream)
    }
    observed?.entry.channel.resetReplay()
  }

  /// Removes the channel of a key if it was released.
  ///
  /// - Returns: Whether the key isn't observed.
  @discardableResult
  func forgetReleased(_ key: Key) -> Bool {
    // The stream is kept until the lock is free, because it may be the last reference to the channel.
    let (stream, number) = state.withLock { ($0.entries[key]?.channel.stream, $0.entries[key]?.number) }
    if stream != nil { return false }
    return state.withLock { state in
      // Another channel may have been opened in between.
      guard state.entries[key]?.number == number else { return false }
      state.entries[key] = nil
      return true
    }
  }

  /// Finishes all channels in the order in which they were opened, and every channel that is opened later.
  func finish() {
    let entries = state.withLock { state in
      defer { state.entries = [:] }
      state.isFinished = true
      return state.entries.values.sorted { $0.number < $1.number }
    }
    for entry in entries { entry.channel.finish() }
  }

  private func existingStream(of key: Key) -> MulticastStream<Element, Never>? {
    state.withLock { $0.entries[key]?.channel.stream }
  }
}
