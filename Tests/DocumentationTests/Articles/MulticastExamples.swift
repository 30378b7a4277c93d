import Multicast

/// The code of `Multicast.md`, copied unchanged so that the compiler checks it.
enum MulticastExamples {
  static func firstExample(print: Print) async {
    let guests = MulticastChannel<String, Never>(replay: 1, buffering: .unbounded)
    guests.send("Ann")

    let badge = guests.stream.subscribe()
    let list = guests.stream.subscribe()
    guests.send("Ben")
    guests.finish()

    for await name in badge { print("badge: \(name)") }  // Ann, Ben
    for await name in list { print("list: \(name)") }  // Ann, Ben
  }
}
