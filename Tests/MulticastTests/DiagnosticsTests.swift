import Multicast
import Testing

@Suite struct DiagnosticsTests {
  /// The counts cover the whole process, so this test reads them in a process of its own.
  @Test func `Live counts rise with each object created and return to their baseline`() async {
    await #expect(processExitsWith: .success) {
      precondition(MulticastDiagnostics.liveChannels == 0)
      precondition(MulticastDiagnostics.liveSubscriptions == 0)
      do {
        let channel = MulticastChannel<Int, Never>(replay: 1, buffering: .unbounded)
        let relay = CurrentValueRelay(1)
        let subscription = channel.stream.subscribe()
        var iterator = relay.stream.makeAsyncIterator()
        let first = await iterator.next()
        precondition(first == 1)
        precondition(MulticastDiagnostics.liveChannels == 2)
        precondition(MulticastDiagnostics.liveSubscriptions == 2)
        withExtendedLifetime((channel, relay, subscription)) {}
      }
      precondition(MulticastDiagnostics.liveChannels == 0)
      precondition(MulticastDiagnostics.liveSubscriptions == 0)
    }
  }
}
