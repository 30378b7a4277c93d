internal import Multicast

/// Returns a stream that has ended.
func finishedStream<Element: Sendable>() -> MulticastStream<Element, Never> {
  let (channel, stream) = UnownedChannel<Element>.makeStream(replay: 0)
  channel.finish()
  return stream
}
