import Multicast
import MulticastTesting

/// A real channel, driven by events through its public surface.
///
/// Every call of `next()` is a task of its own on an executor that runs only here, so that after each event all tasks
/// are finished or wait.
final class ChannelDriver {
  let live = Counter()
  private let channel: MulticastChannel<Token, ModelFailure>
  private let executor = ManualTaskExecutor()
  private let answers = Recorder<Answer>()
  private var subscriptions: [MulticastSubscription<Token, ModelFailure>?] = []
  private var waiting: [Call: Task<Void, Never>] = [:]
  private var sentCount = 0

  init(replayLimit: Int) {
    channel = MulticastChannel(replay: replayLimit, buffering: .unbounded)
  }

  /// Lets the calls end that still wait.
  deinit {
    channel.finish()
    executor.runUntilIdle()
  }

  var subscriberCount: Int { channel.subscriberCount }
  var latest: Int? { channel.latest?.id }
  func droppedCount(_ slot: Int) -> Int { subscriptions[slot]!.droppedCount }

  /// Makes an event happen.
  ///
  /// - Parameter call: What a `next` is named.
  /// - Returns: The calls that are answered by it.
  func apply(_ event: ChannelEvent, call: Int) -> [Answer] {
    switch event {
    case .send: send()
    case .subscribe(let policy): subscribe(policy)
    case .next(let slot): next(Call(number: call, slot: slot))
    case .cancel(let slot): cancel(slot, throughTask: call.isMultiple(of: 2))
    case .drop(let slot): subscriptions[slot] = nil
    case .finish: channel.finish()
    case .fail: channel.finish(throwing: .channel)
    case .resetReplay: channel.resetReplay()
    }
    executor.runUntilIdle()
    let answers = answers.takeValues()
    for answer in answers { waiting[answer.call] = nil }
    return answers
  }

  private func send() {
    live.add(1)
    let element = Token(sentCount) { [live] _ in live.add(-1) }
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

  private func next(_ call: Call) {
    waiting[call] = Task(executorPreference: executor) { [answers, subscription = subscriptions[call.slot]!] in
      var iterator = subscription.makeAsyncIterator()
      let outcome: Answer.Outcome
      do throws(ModelFailure) {
        outcome = try await iterator.next().map { .element($0.id) } ?? .end
      } catch {
        outcome = .failure(error)
      }
      answers.record(Answer(call: call, outcome: outcome))
    }
  }

  /// Cancels a task that waits, if there is one and the caller likes, or else the subscription.
  private func cancel(_ slot: Int, throughTask: Bool) {
    if throughTask, let (_, task) = waiting.first(where: { $0.key.slot == slot }) {
      task.cancel()
    } else {
      subscriptions[slot]!.cancel()
    }
  }
}
