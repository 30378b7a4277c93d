internal import DataStore
internal import Multicast

/// A repository's use of a store, which is suspended while all repositories of this process that use it are.
final class StoreUse: Sendable {
  /// The repositories that use one store.
  private struct Users {
    var count = 0
    var suspendedCount = 0
    /// Whether the store was suspended last, and not resumed.
    var isStoreSuspended = false
    /// Keeps the calls of the store in order.
    let calls = AsyncSerialQueue()
  }

  private static let users = Lock<[ObjectIdentifier: Users]>([:])

  private final class Object: Sendable {}

  private let store: any KeyValueStore
  private let id: ObjectIdentifier
  /// Stands for a store that isn't an object, of which nobody knows who else uses it.
  private let placeholder = Object()
  private let isSuspended = Lock(false)

  init(_ store: any KeyValueStore) {
    self.store = store
    id = ObjectIdentifier(store.baseObject ?? placeholder)
    let isStoreSuspended = Self.users.withLock { users in
      users[id, default: Users()].count += 1
      return users[id]?.isStoreSuspended ?? false
    }
    if isStoreSuspended { Task { [store, id] in await Self.update(store, id) } }
  }

  deinit {
    let isSuspended = isSuspended.withLock(\.self)
    let isStoreAffected = Self.users.withLock { users in
      users[id]?.count -= 1
      if isSuspended { users[id]?.suspendedCount -= 1 }
      guard let use = users[id] else { return false }
      if use.count == 0, !use.isStoreSuspended { users[id] = nil }
      return use.isStoreSuspended || use.suspendedCount > 0
    }
    guard isStoreAffected else { return }
    // No other object may get the id before the task has ended.
    Task { [store, id, placeholder] in
      await Self.update(store, id)
      withExtendedLifetime(placeholder) {}
    }
  }

  /// Suspends the store if no other repository uses it.
  func suspend() async {
    await set(isSuspended: true)
  }

  /// Resumes the store if it is suspended.
  func resume() async {
    await set(isSuspended: false)
  }

  private func set(isSuspended newValue: Bool) async {
    let isChanged = isSuspended.withLock { value in
      defer { value = newValue }
      return value != newValue
    }
    guard isChanged else { return }
    Self.users.withLock { $0[id]?.suspendedCount += newValue ? 1 : -1 }
    await Self.update(store, id)
  }

  /// Suspends or resumes a store, as its users need it now.
  private static func update(_ store: any KeyValueStore, _ id: ObjectIdentifier) async {
    guard let calls = users.withLock({ $0[id]?.calls }) else { return }
    await calls.run {
      let isSuspending = users.withLock { users -> Bool? in
        guard let use = users[id] else { return nil }
        let isSuspending = use.count > 0 && use.suspendedCount == use.count
        guard isSuspending != use.isStoreSuspended else { return nil }
        users[id]?.isStoreSuspended = isSuspending
        if use.count == 0 { users[id] = nil }
        return isSuspending
      }
      guard let isSuspending else { return }
      if isSuspending { await store.suspend() } else { await store.resume() }
    }
  }
}
