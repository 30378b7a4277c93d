internal import DataStore
internal import Multicast

/// The states of a toggle: its state at the time of the subscription, then its state after each change.
struct ToggleStates: AsyncSequence, Sendable {
  let initial: Bool
  let changes: MulticastSubscription<[StoreChange<Bool>], Never>

  struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var initial: Bool?
    fileprivate var changes: MulticastSubscription<[StoreChange<Bool>], Never>.AsyncIterator

    mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> Bool? {
      if let initial = initial.take() { return initial }
      guard let change = await changes.next(isolation: actor) else { return nil }
      return change.last?.stored?.value ?? false
    }
  }

  func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(initial: initial, changes: changes.makeAsyncIterator())
  }
}
