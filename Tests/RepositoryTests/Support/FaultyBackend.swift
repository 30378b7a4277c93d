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
    var changeCount = 0
    var readsFail = false
  }

  private let state = Lock(State())
  private let fault: @Sendable (_ changeNumber: Int) -> Fault?

  /// Creates a plan.
  ///
  /// - Parameter fault: Returns the fault of a change, or `nil` if the change succeeds. Each commit that isn't
  ///   abandoned is one change, and the first has the number 1.
  init(_ fault: @escaping @Sendable (_ changeNumber: Int) -> Fault?) {
    self.fault = fault
  }

  var readsFail: Bool {
    get { state.withLock { $0.readsFail } }
    set { state.withLock { $0.readsFail = newValue } }
  }

  /// Counts a change, and returns its fault; `nil` if it succeeds.
  func nextFault() -> Fault? {
    fault(
      state.withLock { state in
        state.changeCount += 1
        return state.changeCount
      })
  }
}

/// An in-memory backend with planned faults.
struct FaultyBackend: StoreBackend, Sendable {
  /// The error of each call that fails; code 5 is `EIO`, an input/output error.
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
    let fault = plan.nextFault()
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
