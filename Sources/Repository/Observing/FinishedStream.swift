internal import Multicast

/// Returns a finished stream.
func finishedStream<Element: Sendable>() -> MulticastStream<Element, Never> {
  let (channel, stream) = UnownedChannel<Element>.makeStream(replay: 0)
  channel.finish()
  return stream
}
