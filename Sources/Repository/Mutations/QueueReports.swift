internal import Multicast

/// Reports the contents of a repository's queue: immediately the number of live mutations, and shortly afterwards the
/// list of all mutations.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class QueueReports<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias State = MutationQueueState<Source.Key, Source.Mutation>
  typealias List = [PendingMutation<Source.Key, Source.Mutation>]

  private let collection: String
  private let liveCounts: CurrentValueRelay<Int>
  private let version: CurrentValueRelay<UInt64>
  private let lists: KeyChannels<String, List>
  private let events: RepositoryEvents
  /// The last reported number of refused and conflicted mutations.
  private var undecidedCount = 0
  private var sentVersion: UInt64 = 0
  private var isListScheduled = false

  /// - Parameters:
  ///   - collection: The name under which the list is observed.
  ///   - liveCounts: Receives the number of live mutations.
  ///   - version: Receives the version of the queue.
  ///   - lists: Receives the list of all mutations.
  ///   - events: Receives the length of the queue.
  init(
    of collection: String, liveCounts: CurrentValueRelay<Int>, version: CurrentValueRelay<UInt64>,
    lists: KeyChannels<String, List>, events: RepositoryEvents
  ) {
    (self.collection, self.liveCounts, self.version) = (collection, liveCounts, version)
    (self.lists, self.events) = (lists, events)
  }

  /// Reports changes, and schedules the list once for all changes that are made together.
  func report(_ state: State, in engine: isolated Engine) {
    if liveCounts.value != state.liveCount || undecidedCount != state.undecidedCount {
      undecidedCount = state.undecidedCount
      if liveCounts.value != state.liveCount { liveCounts.send(state.liveCount) }
      events.emit(.queueLength(waiting: state.liveCount, dead: undecidedCount))
    }
    if version.value != state.version { version.send(state.version) }
    guard !isListScheduled, sentVersion != state.version, lists.isObserved(collection) else { return }
    isListScheduled = true
    engine.start { engine in engine.queue.sendList() }
  }

  /// Sends the list that ``report(_:in:)`` scheduled.
  func sendList(of state: State) {
    isListScheduled = false
    sentVersion = state.version
    lists.send(state.list, to: collection)
  }

  /// Sends the present list to a new observer.
  func sendFirstList(of state: State) {
    lists.sendFirst(state.list, to: collection)
  }
}
