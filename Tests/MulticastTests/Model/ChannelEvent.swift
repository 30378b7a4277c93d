import Multicast

/// Something that happens to a channel.
///
/// A reader is named by the slot it has while it exists: 0, 1, 2 and so on.
enum ChannelEvent: Equatable {
  /// Sends the next element: the first is 0, the second 1 and so on, so an element is its own position.
  case send
  case subscribe(ModelPolicy)
  /// Calls `next()`, which waits if there is nothing yet.
  case next(Int)
  case cancel(Int)
  /// Drops a reader for whom nobody waits.
  case drop(Int)
  case finish
  case fail
  case resetReplay
}

/// A buffering policy as plain data.
enum ModelPolicy: Equatable, Sendable {
  case unbounded
  case dropOldest(Int)
  case dropNewest(Int)
  case replaceNewest(Int)
  case error(Int)

  /// Every policy, with each of the capacities where it has one.
  static func all(capacities: some Sequence<Int>) -> [ModelPolicy] {
    [.unbounded]
      + capacities.flatMap { [.dropOldest($0), .dropNewest($0), .replaceNewest($0), .error($0)] }
  }

  var capacity: Int {
    switch self {
    case .unbounded: .max
    case .dropOldest(let capacity), .dropNewest(let capacity), .replaceNewest(let capacity), .error(let capacity):
      capacity
    }
  }

  /// Whether its readers read what the channel keeps for all.
  var isFollower: Bool {
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
  case channel
  case overflow(capacity: Int)
}

/// What a call of `next()` came to.
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
struct Call: Equatable, Hashable, Comparable {
  let number: Int
  let slot: Int

  static func < (left: Call, right: Call) -> Bool { left.number < right.number }
}
