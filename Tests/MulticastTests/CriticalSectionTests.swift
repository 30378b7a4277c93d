import Testing

@testable import Multicast

#if DEBUG
  /// The guarantees hold even if another thread acts between two critical sections of an operation.
  ///
  /// Each test performs the other thread's operation itself, after each of the critical sections in turn. It therefore
  /// covers every gap between them. A race between threads would hit a gap only by chance.
  @Suite(.timeLimit(.minutes(15))) struct CriticalSectionTests {
    /// Policies whose buffers have room for all elements of a test, so that nothing is dropped.
    private static let policies: [BufferingPolicy<Never>] = [
      .unbounded, .dropOldest(20), .dropNewest(20), .replaceNewest(20),
    ]
    /// The critical sections of a call of `next()` that finds no element: it reads in the first one, and suspends in
    /// the second.
    private static let sectionsOfNext = 1...2

    @Test(arguments: policies, 0...2)
    func `An element sent after any critical section of subscribe is neither lost nor delivered twice`(
      policy: BufferingPolicy<Never>, replay: Int
    ) async {
      for section in 1... {
        let channel = MulticastChannel<Int, Never>(replay: replay, buffering: policy)
        for element in 1...3 { channel.send(element) }
        let wasSubscribed = Recorder<Bool>()
        let interruption = Interruption(afterSection: section) {
          wasSubscribed.record(channel.subscriberCount == 1)
          channel.send(4)
        }
        let subscription = interruption.whilePerforming { channel.stream.subscribe() }
        let isPastLastSection = !interruption.hasHappened
        if isPastLastSection { channel.send(4) }
        channel.send(5)
        channel.finish()

        // The replay ends with 3 if the subscriber was registered when 4 was sent, and with 4 otherwise.
        let start = (wasSubscribed.values == [false] ? 5 : 4) - replay
        let expected = (start...5).map { Event.element($0) } + [.finished]
        #expect(await subscription.read(expected.count) == expected)
        if isPastLastSection {
          // Subscribing has at least one critical section.
          #expect(section > 1)
          break
        }
      }
    }

    @Test(arguments: policies, sectionsOfNext)
    func `If a call of next finds no element, it returns one that is sent later, before or after it suspends`(
      policy: BufferingPolicy<Never>, section: Int
    ) async {
      let channel = MulticastChannel<Int, Never>(buffering: policy)
      let subscription = channel.stream.subscribe()
      let interruption = Interruption(afterSection: section) {
        channel.send(1)
        channel.send(2)
      }
      #expect(await interruption.whilePerforming { await subscription.read(1) } == [.element(1)])
      #expect(interruption.hasHappened)
      channel.finish()
      #expect(await subscription.read(2) == [.element(2), .finished])
    }

    @Test(arguments: zip(sectionsOfNext, [Event<Int>.failed("\(BufferOverflow(capacity: 0))"), .element(1)]))
    func `Without capacity, a call of next returns only an element that is sent after the call suspends`(
      section: Int, result: Event<Int>
    ) async {
      let channel = MulticastChannel<Int, BufferOverflow>(buffering: .error(0))
      let subscription = channel.stream.subscribe()
      let interruption = Interruption(afterSection: section) { channel.send(1) }
      #expect(await interruption.whilePerforming { await subscription.read(1) } == [result])
      #expect(interruption.hasHappened)
    }

    @Test(arguments: policies, sectionsOfNext)
    func `If a call of next finds no element, a finish before or after its suspension ends the call`(
      policy: BufferingPolicy<Never>, section: Int
    ) async {
      let channel = MulticastChannel<Int, Never>(buffering: policy)
      let subscription = channel.stream.subscribe()
      let interruption = Interruption(afterSection: section) { channel.finish() }
      #expect(await interruption.whilePerforming { await subscription.read(2) } == [.finished, .finished])
      #expect(interruption.hasHappened)
    }

    @Test(arguments: policies, sectionsOfNext)
    func `If a call of next finds no element, a cancellation before or after its suspension ends the call`(
      policy: BufferingPolicy<Never>, section: Int
    ) async {
      let channel = MulticastChannel<Int, Never>(buffering: policy)
      let subscription = channel.stream.subscribe()
      let interruption = Interruption(afterSection: section) { subscription.cancel() }
      #expect(await interruption.whilePerforming { await subscription.read(2) } == [.finished, .finished])
      #expect(interruption.hasHappened)
      #expect(channel.subscriberCount == 0)
    }
  }

  /// An operation that happens once, when another operation has left a given number of critical sections.
  private final class Interruption: Sendable {
    private let remainingSections: Counter
    private let operation: @Sendable () -> Void

    init(afterSection section: Int, _ operation: @escaping @Sendable () -> Void) {
      remainingSections = Counter(section)
      self.operation = operation
    }

    var hasHappened: Bool { remainingSections.value <= 0 }

    func whilePerforming<Result>(_ interrupted: () -> Result) -> Result {
      CriticalSections.$didLeave.withValue({ self.didLeaveSection() }, operation: interrupted)
    }

    func whilePerforming<Result>(_ interrupted: () async -> Result) async -> Result {
      await CriticalSections.$didLeave.withValue({ self.didLeaveSection() }, operation: interrupted)
    }

    private func didLeaveSection() {
      remainingSections.add(-1)
      // The critical sections of the interrupting operation don't count.
      if remainingSections.value == 0 { CriticalSections.$didLeave.withValue(nil, operation: operation) }
    }
  }
#endif
