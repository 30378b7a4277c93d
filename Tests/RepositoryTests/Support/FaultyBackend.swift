import DataStore
import Foundation
import Multicast

/// Decides which operations of a ``FaultyBackend`` fail.
final class FaultPlan: Sendable {
  enum Fault: Sendable {
    /// The change isn't made, and the call fails.
    case refused
    /// The change is made, but the call fails.
    case appliedButFailed
  }

  private struct State {
    var changes = 0
    var readsFail = false
  }

  private let state = Lock(State())
  private let fault: @Sendable (_ change: Int) -> Fault?

  /// Creates a plan.
  ///
  /// - Parameter fault: Returns the fault of a change, or `nil` if the change succeeds. Each commit is one change, and
  ///   the first has the number 1.
  init(_ fault: @escaping @Sendable (_ change: Int) -> Fault?) {
    self.fault = fault
  }

  var readsFail: Bool {
    get { state.withLock { $0.readsFail } }
    set { state.withLock { $0.readsFail = newValue } }
  }

  func nextChange() -> Fault? {
    fault(
      state.withLock { state in
        state.changes += 1
        return state.changes
      })
  }
}

/// An in-memory backend with planned faults.
struct FaultyBackend: StoreBackend, Sendable {
  static let error = SystemError(code: 5, operation: "testing", path: "memory")

  let storage: InMemoryStorage
  let plan: FaultPlan

  func read(_ name: String) throws(StoreError) -> Data? {
    if plan.readsFail { throw .readFailed(Self.error) }
    return storage[name]
  }

  mutating func commit(
    _ writes: [StoreWrite], deciding decide: (inout Self) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool {
    guard case .proceed(let removals) = try decide(&self) else { return false }
    let fault = plan.nextChange()
    if fault != .refused {
      for name in removals { storage[name] = nil }
      for write in writes { storage[write.name] = write.bytes }
    }
    if fault != nil { throw writes.isEmpty ? .removeFailed(Self.error) : .writeFailed(Self.error) }
    return true
  }

  func quarantine(_ bytes: Data, of name: String, at time: Date) throws(StoreError) -> String? {
    InMemoryBackend(storage: storage).quarantine(bytes, of: name, at: time)
  }

  func names() throws(StoreError) -> [String] {
    if plan.readsFail { throw .readFailed(Self.error) }
    return InMemoryBackend(storage: storage).names()
  }
}
