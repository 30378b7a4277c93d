import Multicast

/// An event of a channel: an operation on the channel or on one of its subscribers.
///
/// A subscriber is identified by the slot that it occupies while it exists: 0, 1, 2 and so on.
enum ChannelEvent: Equatable {
  /// Sends the next element.
  ///
  /// The elements are 0, 1, 2 and so on, so that each equals its position.
  case send
  case subscribe(ModelPolicy)
  /// Calls `next()`, which suspends if the subscriber has nothing to read yet.
  case next(Int)
  /// Cancels a subscriber, which ends all its pending calls.
  case cancel(Int)
  /// Releases a subscriber, which must have no pending calls.
  case releaseSubscriber(Int)
  case finish
  case fail
  case resetReplay
}

/// A buffering policy that can be compared.
enum ModelPolicy: Equatable, Sendable {
  case unbounded
  case dropOldest(Int)
  case dropNewest(Int)
  case replaceNewest(Int)
  case error(Int)

  /// Returns the unbounded policy, the error policy with capacity 0, and each bounded policy with each of the given
  /// capacities.
  static func all(capacities: some Sequence<Int>) -> [ModelPolicy] {
    [.unbounded, .error(0)]
      + capacities.flatMap { [.dropOldest($0), .dropNewest($0), .replaceNewest($0), .error($0)] }
  }

  var capacity: Int {
    switch self {
    case .unbounded: .max
    case .dropOldest(let capacity), .dropNewest(let capacity), .replaceNewest(let capacity), .error(let capacity):
      capacity
    }
  }

  /// Whether subscribers with this policy are cursor subscribers, which read from the channel's log without a buffer.
  var usesCursor: Bool {
    switch self {
    case .unbounded, .dropOldest: true
    case .dropNewest, .replaceNewest, .error: false
    }
  }

  var buffering: BufferingPolicy<ModelFailure> {
    switch self {
    case .unbounded: .unbounded
    case .dropOldest(let capacity): .dropOldest(capacity)
    case .dropNewest(let capacity): .dropNewest(capacity)
    case .replaceNewest(let capacity): .replaceNewest(capacity)
    case .error(let capacity): .error(capacity) { .overflow(capacity: $0.capacity) }
    }
  }
}

enum ModelFailure: Error, Equatable {
  case channelFailed
  case overflow(capacity: Int)
}

/// The result of a call of `next()`.
struct Answer: Equatable {
  enum Outcome: Equatable {
    case element(Int)
    case end
    case failure(ModelFailure)
  }

  let call: Call
  let outcome: Outcome
}

/// A call of `next()`.
struct Call: Equatable, Hashable {
  /// The number of the event that makes the call, which no other call of the same channel has.
  let number: Int
  let slot: Int
}
