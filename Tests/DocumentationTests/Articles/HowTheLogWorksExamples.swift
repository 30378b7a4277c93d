import Multicast

/// The code of `HowTheLogWorks.md`, copied unchanged so that the compiler checks it.
enum HowTheLogWorksExamples {
  static func window(print: Print) {
    let channel = MulticastChannel<Int, Never>(buffering: .dropOldest(3))
    let subscription = channel.stream.subscribe()
    for element in 1...1_000 { channel.send(element) }
    print(subscription.droppedCount)  // 997
  }
}
