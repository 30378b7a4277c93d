import Multicast

/// The code of Multicast.md, to the letter: what is there compiles because it compiles here.
enum MulticastExamples {
  static func firstExample(print: Print) async {
    let likes = MulticastChannel<String, Never>(replay: 1, buffering: .unbounded)
    likes.send("Ann")

    let badge = likes.stream.subscribe()
    let list = likes.stream.subscribe()
    likes.send("Ben")
    likes.finish()

    for await name in badge { print("badge: \(name)") }  // Ann, Ben
    for await name in list { print("list: \(name)") }  // Ann, Ben
  }
}
