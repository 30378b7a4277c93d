import Multicast
import MulticastTesting

/// A real channel, which is driven by events through its public API.
///
/// Each call of `next()` runs in a task of its own. Only this driver runs the tasks' executor, so that after each event
/// every task has finished or is suspended.
final class ChannelDriver {
  /// The number of elements that aren't released yet.
  let liveCount = Counter()
  private let channel: MulticastChannel<Token, ModelFailure>
  private let executor = ManualTaskExecutor()
  private let recorder = Recorder<Answer>()
  private var subscriptions: [MulticastSubscription<Token, ModelFailure>?] = []
  private var pendingTasks: [Call: Task<Void, Never>] = [:]
  private var sentCount = 0

  init(replayLimit: Int) {
    channel = MulticastChannel(replay: replayLimit, buffering: .unbounded)
  }

  /// Ends the pending calls.
  deinit {
    channel.finish()
    executor.runUntilIdle()
  }

  var subscriberCount: Int { channel.subscriberCount }
  var latest: Int? { channel.latest?.id }
  func droppedCount(_ slot: Int) -> Int { subscriptions[slot]!.droppedCount }

  /// Applies an event.
  ///
  /// - Parameter callNumber: The number of the call that a `next` event makes. For a `cancel` event, an even number
  ///   cancels a suspended task, if there is one, instead of the subscription.
  /// - Returns: The answers to the calls that the event completes.
  func apply(_ event: ChannelEvent, callNumber: Int) -> [Answer] {
    switch event {
    case .send: send()
    case .subscribe(let policy): subscribe(policy)
    case .next(let slot): startCall(Call(number: callNumber, slot: slot))
    case .cancel(let slot): cancel(slot, prefersTask: callNumber.isMultiple(of: 2))
    case .releaseSubscriber(let slot): subscriptions[slot] = nil
    case .finish: channel.finish()
    case .fail: channel.finish(throwing: .channelFailed)
    case .resetReplay: channel.resetReplay()
    }
    executor.runUntilIdle()
    let answers = recorder.takeValues()
    for answer in answers { pendingTasks[answer.call] = nil }
    return answers
  }

  private func send() {
    liveCount.add(1)
    let element = Token(sentCount) { [liveCount] _ in liveCount.add(-1) }
    if channel.send(element) == .sent { sentCount += 1 }
  }

  private func subscribe(_ policy: ModelPolicy) {
    let subscription = channel.stream.buffering(policy.buffering).subscribe()
    if let slot = subscriptions.firstIndex(where: { $0 == nil }) {
      subscriptions[slot] = subscription
    } else {
      subscriptions.append(subscription)
    }
  }

  private func startCall(_ call: Call) {
    pendingTasks[call] = Task(executorPreference: executor) { [recorder, subscription = subscriptions[call.slot]!] in
      var iterator = subscription.makeAsyncIterator()
      let outcome: Answer.Outcome
      do throws(ModelFailure) {
        outcome = try await iterator.next().map { .element($0.id) } ?? .end
      } catch {
        outcome = .failure(error)
      }
      recorder.record(Answer(call: call, outcome: outcome))
    }
  }

  /// Cancels a suspended task of the slot if `prefersTask` is true and there is one, and the subscription otherwise.
  private func cancel(_ slot: Int, prefersTask: Bool) {
    if prefersTask, let (_, task) = pendingTasks.first(where: { $0.key.slot == slot }) {
      task.cancel()
    } else {
      subscriptions[slot]!.cancel()
    }
  }
}
