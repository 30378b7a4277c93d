import Multicast

/// The code of `HowTheLogWorks.md`, copied exactly so that it is compiled.
enum HowTheLogWorksExamples {
  static func window(print: Print) {
    let channel = MulticastChannel<Int, Never>(buffering: .dropOldest(3))
    let subscription = channel.stream.subscribe()
    for element in 1...1_000 { channel.send(element) }
    print(subscription.droppedCount)  // 997
  }
}
