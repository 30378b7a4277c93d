internal import Multicast

/// Reports what is in the queue of a repository: the number of mutations at once, and their list a step later.
///
/// Belongs to one ``SyncEngine`` and is used in its isolation only.
final class QueueReports<Source: RepositorySource> {
  typealias Engine = SyncEngine<Source>
  typealias State = MutationQueueState<Source.Key, Source.Mutation>
  typealias List = [PendingMutation<Source.Key, Source.Mutation>]

  private let collection: String
  private let liveCounts: CurrentValueRelay<Int>
  private let lists: KeyChannels<String, List>
  private let events: RepositoryEvents
  private var sentVersion: UInt64 = 0
  private var isListScheduled = false

  /// - Parameters:
  ///   - collection: The name under which the list is observed.
  ///   - liveCounts: Where to report the number of mutations that will be sent, or are.
  ///   - lists: Where to report all mutations.
  ///   - events: Where to report the length of the queue.
  init(
    of collection: String, liveCounts: CurrentValueRelay<Int>, lists: KeyChannels<String, List>,
    events: RepositoryEvents
  ) {
    (self.collection, self.liveCounts, self.lists, self.events) = (collection, liveCounts, lists, events)
  }

  /// Reports what is new; the list once for all changes of one step.
  func report(_ state: State, in engine: isolated Engine) {
    if liveCounts.value != state.liveCount {
      liveCounts.send(state.liveCount)
      events.emit(.queueLength(waiting: state.liveCount, dead: state.count - state.liveCount))
    }
    guard !isListScheduled, sentVersion != state.version, lists.isObserved(collection) else { return }
    isListScheduled = true
    engine.start { engine in engine.queue.sendList() }
  }

  /// Sends the list that ``report(_:in:)`` announced.
  func sendList(of state: State) {
    isListScheduled = false
    sentVersion = state.version
    lists.send(state.list, to: collection)
  }

  /// Gives a new observer of the list what there is.
  func sendFirstList(of state: State) {
    lists.sendFirst(state.list, to: collection)
  }
}
