internal import Multicast

/// Reports the contents of a repository's queue: immediately the number of live mutations, and shortly afterwards the
/// list of all mutations.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class QueueReports<Source: RepositorySource> {
  typealias State = MutationQueue<Source.Key, Source.Mutation>
  typealias List = [PendingMutation<Source.Key, Source.Mutation>]

  private let listKey: String
  private let liveCounts: CurrentValueRelay<Int>
  private let lists: KeyChannels<String, List>
  private let events: RepositoryEvents
  private var reported = QueueSummary()
  /// The version of the list that was sent last.
  private var sentListVersion: UInt64 = 0
  private var isListScheduled = false

  /// - Parameters:
  ///   - listKey: The key under which the list is observed.
  ///   - liveCounts: Receives the number of live mutations.
  ///   - lists: Receives the list of all mutations.
  ///   - events: Receives the length of the queue.
  init(
    of listKey: String, liveCounts: CurrentValueRelay<Int>, lists: KeyChannels<String, List>, events: RepositoryEvents
  ) {
    (self.listKey, self.liveCounts, self.lists, self.events) = (listKey, liveCounts, lists, events)
  }

  /// The greatest number of mutations for which each change is sent at once.
  private static var maximumCountSentAtOnce: Int { 256 }

  /// Returns the time between two lists of more mutations: one frame of a display for each 256 of them.
  ///
  /// A list takes a time that is linear in its length. So a drain of an observed queue takes a time that is linear in
  /// the length, and not quadratic.
  private static func interval(ofListsWith count: Int) -> Duration {
    .milliseconds(16) * (count / maximumCountSentAtOnce)
  }

  /// Reports changes, and schedules the list once for all changes that are made together.
  ///
  /// - Returns: The time after which ``sendList(of:)`` must be called; `nil` if no list is to be sent.
  func report(_ state: QueueSummary) -> Duration? {
    if state == reported { return nil }
    let earlier = reported
    reported = state
    if earlier.liveCount != state.liveCount { liveCounts.send(state.liveCount) }
    if earlier.liveCount != state.liveCount || earlier.undecidedCount != state.undecidedCount {
      events.emit(.queueLength(waiting: state.liveCount, dead: state.undecidedCount))
    }
    guard !isListScheduled, sentListVersion != state.version, lists.isObserved(listKey) else { return nil }
    isListScheduled = true
    return state.count > Self.maximumCountSentAtOnce ? Self.interval(ofListsWith: state.count) : .zero
  }

  /// Sends the list that ``report(_:)`` scheduled.
  func sendList(of state: State) {
    isListScheduled = false
    sentListVersion = state.version
    lists.send(state.list, to: listKey)
  }

  /// Sends the present list to the observers, unless their channel replays one already.
  func sendFirstList(of state: State) {
    lists.sendFirst(state.list, to: listKey)
  }
}
