internal import DataStore
internal import Multicast

/// Whether a toggle is on: its state when it was asked for, then each change.
struct ToggleStates: AsyncSequence, Sendable {
  let present: Bool
  let changes: MulticastSubscription<[StoreChange<Bool>], Never>

  struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var present: Bool?
    fileprivate var changes: MulticastSubscription<[StoreChange<Bool>], Never>.AsyncIterator

    mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> Bool? {
      if let present = present.take() { return present }
      guard let change = await changes.next(isolation: actor) else { return nil }
      return change.last?.stored?.value ?? false
    }
  }

  func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(present: present, changes: changes.makeAsyncIterator())
  }
}
