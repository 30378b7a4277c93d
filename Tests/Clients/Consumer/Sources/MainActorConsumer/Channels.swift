import Multicast

/// A measurement, which never leaves the main actor.
struct Reading {
  let celsius: Int
}

extension MainActorConsumer {
  static func broadcast() async {
    let channel = MulticastChannel<Reading, Never>(buffering: .unbounded)
    // Registered before the first element is sent, so that it receives every element.
    let readings = channel.stream.subscribe()
    let maximum = Task {
      var maximum = Int.min
      for await reading in readings { maximum = max(maximum, reading.celsius) }
      return maximum
    }
    for celsius in [18, 24, 21] { channel.send(Reading(celsius: celsius)) }
    channel.finish()
    report("Multicast", await maximum.value, expected: 24)
  }
}
