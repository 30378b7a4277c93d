import Dispatch
import Foundation
import Multicast
import MulticastTesting

@testable import DataStore

/// A backend in memory that records which of its functions are called, and can be made to wait or fail.
struct SteppedBackend: StoreBackend, Sendable {
  enum Call: String, Sendable {
    case read, commit, startWatching, takeExternalChanges, close
  }

  /// What a test knows and decides of a backend.
  final class Control: Sendable {
    private struct State {
      var calls: [Call] = []
      var onChange: (@Sendable () -> Void)?
      var waiting: Call?
      var failing: Set<Call> = []
    }

    private let state = Lock(State())
    private let semaphore = DispatchSemaphore(value: 0)
    /// Is passed when the call that waits has begun.
    let arrival = Gate()

    /// The calls so far.
    var calls: [Call] { state.withLock(\.calls) }

    /// Returns the calls so far, and forgets them.
    func takeCalls() -> [Call] {
      state.withLock { state in
        defer { state.calls = [] }
        return state.calls
      }
    }

    /// Makes the next call of a function wait for ``proceed()``.
    func holdNext(_ call: Call) { state.withLock { $0.waiting = call } }

    func proceed() { semaphore.signal() }

    func setFailing(_ calls: Set<Call>) { state.withLock { $0.failing = calls } }

    /// Reports a change, as the system does.
    func reportChange() { state.withLock(\.onChange)?() }

    fileprivate func begin(_ call: Call) throws(StoreError) {
      let (mustWait, mustFail) = state.withLock { state in
        state.calls.append(call)
        defer { if state.waiting == call { state.waiting = nil } }
        return (state.waiting == call, state.failing.contains(call))
      }
      if mustWait {
        arrival.open()
        semaphore.wait()
      }
      if mustFail { throw .readFailed(SystemError(code: 5, operation: "\(call)", path: "memory")) }
    }

    fileprivate func begin(onChange: @escaping @Sendable () -> Void) { state.withLock { $0.onChange = onChange } }
  }

  let control: Control
  private var base: InMemoryBackend
  private let wakes: Bool

  /// - Parameters:
  ///   - control: What a test knows and decides of the backend.
  ///   - storage: The stored bytes.
  ///   - wakes: Whether the backend wakes its store when another one changes the storage.
  init(_ control: Control, storage: InMemoryStorage = InMemoryStorage(), wakes: Bool = true) {
    (self.control, self.wakes) = (control, wakes)
    base = InMemoryBackend(storage: storage)
  }

  mutating func read(_ name: String) throws(StoreError) -> Data? {
    try control.begin(.read)
    return base.read(name)
  }

  mutating func commit(
    _ writes: [StoreWrite], deciding decide: (inout Self) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool {
    try control.begin(.commit)
    return try base.make(writes, decide(&self))
  }

  mutating func quarantine(_ bytes: Data, of name: String, at time: Date) -> String? {
    base.quarantine(bytes, of: name, at: time)
  }

  mutating func names() -> [String] { base.names() }

  mutating func startWatching(_ onChange: @escaping @Sendable () -> Void) throws(StoreError) {
    try control.begin(.startWatching)
    control.begin(onChange: onChange)
    base.startWatching { [wakes] in if wakes { onChange() } }
  }

  mutating func takeExternalChanges() throws(StoreError) -> ExternalChanges {
    try control.begin(.takeExternalChanges)
    return base.takeExternalChanges()
  }

  mutating func close() {
    do throws(StoreError) { try control.begin(.close) } catch {
      // Closing can't fail.
    }
    base.close()
  }
}
