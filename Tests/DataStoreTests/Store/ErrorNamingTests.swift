import Foundation
import Testing

@testable import DataStore

/// The error of a failed system call names what the caller of the store asked for, whichever step has failed.
struct ErrorNamingTests {
  /// A call of a store.
  enum Request: CaseIterable {
    case load, changes, observe, save, remove, removeAll, batchWithSave, batchOfRemovals, batchOfPreconditions
    case erase, lock

    /// The error of a failed system call in this call.
    var failure: (SystemError) -> StoreError {
      switch self {
      case .load, .changes, .observe: StoreError.readFailed
      case .save, .batchWithSave: StoreError.writeFailed
      case .remove, .removeAll, .batchOfRemovals: StoreError.removeFailed
      case .batchOfPreconditions: StoreError.checkFailed
      case .erase: StoreError.eraseFailed
      case .lock: StoreError.lockFailed
      }
    }
  }

  private let key = StoreKey<Int>("number")
  private let otherKey = StoreKey<Int>("number", id: "other")

  private func make(_ request: Request, in store: some KeyValueStore) async throws(StoreError) {
    var batch = StoreBatch()
    switch request {
    case .load: _ = try await store.load(key)
    case .changes: _ = try await store.changes(of: key)
    case .observe: _ = try await store.observe(collection: "number", as: Int.self)
    case .save: try await store.save(1, for: key)
    case .remove: try await store.remove(key)
    case .removeAll: try await store.removeAll(in: "number")
    case .batchWithSave:
      batch.remove(key)
      batch.save(1, for: otherKey)
      batch.require(nil, of: StoreKey<Int>("number", id: "third"))
      try await store.commit(batch)
    case .batchOfRemovals:
      batch.remove(key)
      batch.require(nil, of: otherKey)
      try await store.commit(batch)
    case .batchOfPreconditions:
      batch.require(nil, of: key)
      try await store.commit(batch)
    case .erase: try await store.erase { _ in true }
    case .lock: _ = try await store.acquireLock("leader")
    }
  }

  @Test(arguments: FailingBackend.Step.allCases, Request.allCases)
  func `An error names what was asked, and not the step that failed`(
    step: FailingBackend.Step, request: Request
  ) async throws {
    let needsStep =
      switch (step, request) {
      case (.reading, .lock), (.reading, .erase): false
      case (.committing, .load), (.committing, .changes), (.committing, .observe), (.committing, .erase): false
      case (.committing, .lock): false
      case (.quarantining, .erase), (.quarantining, .lock): false
      // Without a change, corrupt bytes count as a value that doesn't meet the precondition.
      case (.erasingOrLocking, _): request == .erase || request == .lock
      default: true
      }
    guard needsStep else { return }
    let backend = FailingBackend(failingStep: step)
    if step == .quarantining { backend.storage["number"] = Data("corrupt".utf8) }
    let store = BackedStore(backend: backend)
    await #expect(throws: request.failure(FailingBackend.error)) { try await make(request, in: store) }
  }

  @Test func `Each error says what failed, and what to do`() {
    let error = SystemError(code: ENOSPC, operation: "write", path: "/store")
    for (storeError, summary) in [
      (StoreError.checkFailed(error), "The store could not check the preconditions, and nothing was to be changed."),
      (.eraseFailed(error), "The store could not erase everything; some items may be left."),
      (.lockFailed(error), "The store could not lock the name."),
    ] {
      #expect(storeError.description.hasPrefix("\(summary) write of /store failed: "))
      #expect(storeError.description.hasSuffix("Free some space, then try again."))
    }
  }
}

/// An in-memory backend of which one step fails, with an error that names only this step.
struct FailingBackend: StoreBackend, Sendable {
  enum Step: CaseIterable {
    case reading, committing, quarantining, erasingOrLocking
  }

  static let error = SystemError(code: ENOSPC, operation: "write", path: "/store")

  let failingStep: Step
  let storage = InMemoryStorage()
  private var base: InMemoryBackend { InMemoryBackend(storage: storage) }

  init(failingStep: Step) {
    self.failingStep = failingStep
  }

  private func fail(at step: Step, with error: StoreError) throws(StoreError) {
    if step == failingStep { throw error }
  }

  func read(_ name: String) throws(StoreError) -> Data? {
    try fail(at: .reading, with: .readFailed(Self.error))
    return base.read(name)
  }

  func commit(
    _ writes: [StoreWrite], deciding decide: (inout FailingBackend) throws(StoreError) -> CommitDecision
  ) throws(StoreError) -> Bool {
    var backend = self
    let decision = try decide(&backend)
    // A backend doesn't know what a commit without writes is for.
    try fail(at: .committing, with: writes.isEmpty ? .removeFailed(Self.error) : .writeFailed(Self.error))
    return try base.make(writes, decision)
  }

  func quarantine(_ bytes: Data, of name: String, at time: Date) throws(StoreError) -> String? {
    try fail(at: .quarantining, with: .writeFailed(Self.error))
    return base.quarantine(bytes, of: name, at: time)
  }

  func names() throws(StoreError) -> [String] {
    try fail(at: .reading, with: .readFailed(Self.error))
    return base.names()
  }

  func erase(_ isErased: (StoredItem) -> Bool) throws(StoreError) {
    throw .removeFailed(Self.error)
  }

  func acquireLock(_ name: String) throws(StoreError) -> StoreLockResult {
    throw .writeFailed(Self.error)
  }
}
