internal import DataStore
internal import Multicast

/// The states of a toggle: its state at the time of the subscription, then its state after each change.
///
/// Changes that the store reports together yield one state, the last one.
struct ToggleStates: AsyncSequence, Sendable {
  let initial: Bool
  /// The changes of the toggle's collection, which contains no other toggle.
  let changes: MulticastSubscription<[StoreChange<Bool>], Never>

  struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var initial: Bool?
    fileprivate var batches: MulticastSubscription<[StoreChange<Bool>], Never>.AsyncIterator

    mutating func next(isolation actor: isolated (any Actor)? = #isolation) async -> Bool? {
      if let initial = initial.take() { return initial }
      guard let batch = await batches.next(isolation: actor) else { return nil }
      // A toggle without a stored state is off.
      return batch.last?.stored?.value ?? false
    }
  }

  func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(initial: initial, batches: changes.makeAsyncIterator())
  }
}
